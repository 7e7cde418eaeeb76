"""A process's settings from its launcher, and the meeting of the processes of one start.

environment   which of how many processes this one is
meeting       a part of the launcher's store for one start
"""

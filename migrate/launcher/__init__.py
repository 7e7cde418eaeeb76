"""What a launcher told a process, and how the processes of one start meet.

environment   which of how many processes this one is
meeting       a part of the launcher's store for one start
"""

"""The result in words, HTML, Markdown and JUnit XML."""

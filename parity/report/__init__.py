"""What was found, in words, HTML, Markdown and JUnit XML."""

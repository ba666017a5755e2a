"""The figures of a report, one a file: plain data in, an SVG with a title and words out."""

"""Whatever users pass: a right answer, or an error that says what to do."""

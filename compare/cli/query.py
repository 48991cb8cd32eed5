"""`python -m compare.query runs/ "select …"`: any question in SQL, over any number of run folders."""

from collections.abc import Sequence

from compare.cli.options.query_request import parse_question
from meshes.process.command_line import print_json


def main(argv: Sequence[str] | None = None) -> int:
    """Print the answer, or write it; without a question print what can be asked."""
    question = parse_question(argv)
    if question.save:
        from compare.query.engine import save_tables

        saved = [str(place) for place in save_tables(question.runs, question.save)]
        if question.form == "json":
            print_json(saved)
        else:
            print(*saved, sep="\n")
        return 0

    from functools import partial

    from compare.query.show import describe_tables, print_csv_rows, print_json_rows, print_rows, print_tables

    if not question.sql:
        if question.form == "json":
            print_json(describe_tables(question.runs))
        else:
            print_tables(question.runs)
        return 0

    from compare.query.engine import answer_question, write_rows

    answer = partial(
        answer_question, question.runs, question.sql, allow_files=question.allow_files, seconds=question.timeout
    )
    if question.out:
        answer(partial(write_rows, out=question.out))
        print(question.out)
        return 0
    show = {"table": print_rows, "json": print_json_rows, "csv": print_csv_rows}[question.form]
    answer(show)
    return 0

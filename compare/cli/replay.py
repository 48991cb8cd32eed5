"""`wirediff replay FOLDER`: a Chakra trace, or a run by ASTRA-sim's rules."""

from collections.abc import Sequence

from compare.cli.options.replay_request import parse_graph_request
from meshes.process.log import complain_of


def main(argv: Sequence[str]) -> int:
    """Print ns on our own engine, or ASTRA-sim's cycles.  1: some programs of the run could not be read."""
    request = parse_graph_request(argv)

    import json

    from compare.simulate.graphs.answer import answer_subject, describe_subject, find_subjects, name_machine
    from compare.simulate.print_answer import note_rings

    subjects, failures = find_subjects(request)
    answers: list[dict[str, object]] = []
    for subject in subjects:
        answer, line = answer_subject(subject, request)
        if not answers and request.as_astra_sim:
            note_rings(name_machine(request))
        answers.append({"program": subject.name} | answer)
        if not request.json:
            print(line, describe_subject(subject), sep="\n")
    if request.json:
        print(json.dumps({"programs": answers} if request.is_run else answers[0]))
    elif request.out is not None:
        print(request.out)
    return complain_of(failures)

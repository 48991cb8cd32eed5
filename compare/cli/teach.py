"""`python -m compare.teach [PATTERN]`: which collectives a sharding causes, from one matmul to a mixture of experts."""

from collections.abc import Sequence

from meshes.process.command_line import command_parser, path, print_json
from meshes.process.log import complain, log


def main(argv: Sequence[str] | None = None) -> int:
    """Compile, and write the pages; or print one lesson.  0: everything succeeded; 1: some program failed."""
    parser = command_parser(
        "compare.teach",
        "Build the gallery of sharding patterns, each compiled for TPU chips, as web pages; or print one lesson.",
        example="matmul-contracting",
    )
    add = parser.add_argument
    add("pattern", nargs="?", metavar="PATTERN", help="print this lesson (default: write the pages of all lessons)")
    add("--out", metavar="DIR", type=path, default="gallery", help="output folder of the pages")
    add("--list", action="store_true", help="print the names of all lessons and exit")
    add("--json", action="store_true", help="print the compiled collectives as JSON; write no pages")
    add("--no-cache", action="store_true", help="recompile everything, and write nothing to the cache")
    add("--quiz", action="store_true", help="ask which collectives the program of some lesson has, then show them")
    add("--seed", metavar="N", type=int, help="with --quiz: question number (default: random)")
    add("--answer", metavar="WORDS", help='with --quiz: your answer, "2× all-gather@dp" or "free" (no collective)')
    options = parser.parse_args(argv)
    if options.list and (options.quiz or options.pattern):
        parser.error("--list prints the names of all lessons; leave out --quiz and PATTERN")
    if options.quiz:
        from compare.gallery.take_quiz import take_quiz

        return take_quiz(options.seed, options.answer, as_json=options.json, no_cache=options.no_cache)
    if options.seed is not None or options.answer is not None:
        parser.error("--seed and --answer need --quiz")
    from compare.gallery.lessons import LESSONS, find_lesson

    if options.list:
        from compare.gallery.render.print_lessons import print_names

        if options.json:
            print_json({lesson.name: lesson.title for lesson in LESSONS})
        else:
            print_names()
        return 0

    if not (options.json or options.pattern) and options.out.exists() and not options.out.is_dir():
        parser.error(f"{options.out} is no folder; choose another with --out")
    lessons = find_lesson(options.pattern) if options.pattern else LESSONS
    from compare.gallery.compile_lessons import build_each
    from compare.run import cache

    programs = [(lesson, program) for lesson in lessons for program in lesson.programs]
    with cache.open_cache(bypass=options.no_cache) as user_cache:
        results = build_each(programs, cache=user_cache, notify=log().info)
    if options.json:
        print_json([item.public() for item in results])
    elif options.pattern:
        from compare.gallery.render.print_lessons import print_lesson

        index = LESSONS.index(lessons[0])
        names = ["", *(item.name for item in LESSONS), ""]
        print_lesson(results, before=names[index], after=names[index + 2])
    else:
        from compare.gallery.render.page import INDEX, write_pages
        from compare.gallery.render.print_lessons import print_gallery

        print_gallery(results)
        if not any(item.ok for item in results):
            complain(f"no program could be compiled: no pages are written to {options.out}")
            return 1
        write_pages(results, options.out)
        print(options.out / INDEX)
    return 0 if all(item.ok for item in results) else 1

"""The quiz in a terminal: a question, and what becomes of an answer."""

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from compare.gallery.quiz.answers import HOW, Answer, count_emitted
from compare.gallery.quiz.question import Question
from compare.gallery.render.quiz_words import AnsweredQuestion, arrays, rule_lines, sizes, sum_lines
from compare.gallery.render.words import SCATTERED, shows_scatters, strip_markup
from compare.render.terminal import STYLES, console, text_width, wrap_prose
from meshes.process.one_line import one_line

RIGHT, WRONG = "inherent", "induced"


def print_question(question: Question, source: str) -> None:
    """What is asked; the answer stays hidden."""
    out = console()
    out.print(Text(f"Question {question.seed}", style="bold"))
    out.print(Text(arrays(question), style="cyan"))
    _prose(out, sizes(question))
    out.print(Syntax(source.rstrip(), "python", background_color="default", word_wrap=True))
    _prose(out, "Which collectives does a step of the compiled program run, over which axes, and how often?")
    _prose(out, f"Answer: {HOW}")


def print_truth(told: AnsweredQuestion, answer: Answer | None) -> None:
    """Whether the answer is right, what is true, and why."""
    out = console()
    if not told.made.ok:
        _prose(out, f"It could not be compiled, {told.made.status}: {one_line(told.made.error)}", style=STYLES[WRONG])
        return
    if answer is not None:
        truth = count_emitted(told.made)
        right = answer.is_right(truth)
        wrong = "Wrong in number only" if answer.is_miscounted(truth) else "Wrong"
        words = f"Right: {told.truth}" if right else f"{wrong}: you said {answer}; it is {told.truth}"
        _prose(out, words, style=STYLES[RIGHT if right else WRONG])
    else:
        _prose(out, f"It is {told.truth}")
    for line in told.lines:
        _prose(out, f"  {strip_markup(line)}")
    if shows_scatters([told.made]):
        _prose(out, SCATTERED)
    for line in rule_lines(told):
        _prose(out, f"The rule, {line}")
    for line in sum_lines(told):
        _prose(out, f"  {line}")
    if not told.follows:
        _prose(out, "This is not what the rules say: the compiler or the framework has changed.", style=STYLES[WRONG])
    for one in told.lessons:
        _prose(out, f"Read: python -m compare.teach {one.name}, or docs/gallery/{one.name}.html")


def _prose(out: Console, words: str, *, style: str = "") -> None:
    kept = len(words) - len(words.lstrip())
    out.print(wrap_prose(strip_markup(words), width=text_width(out), indent=" " * kept, hang="    ", style=style))

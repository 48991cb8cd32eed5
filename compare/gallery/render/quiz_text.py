"""The quiz in a terminal: a question, and what becomes of an answer."""

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from compare.gallery.quiz.answers import HOW, Answer, truth_of
from compare.gallery.quiz.question import Question
from compare.gallery.render.quiz_words import AnsweredQuestion, arrays, rule_lines, sizes, worked_out
from compare.gallery.render.words import SCATTERED, plain, shows_scatters
from compare.render.terminal import STYLES, console, text_width, wrapped
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
        truth = truth_of(told.made)
        right = answer.is_right(truth)
        wrong = "Wrong in number only" if answer.is_miscounted(truth) else "Wrong"
        words = f"Right: {told.truth}" if right else f"{wrong}: you said {answer}; it is {told.truth}"
        _prose(out, words, style=STYLES[RIGHT if right else WRONG])
    else:
        _prose(out, f"It is {told.truth}")
    for line in told.lines:
        _prose(out, f"  {plain(line)}")
    if shows_scatters([told.made]):
        _prose(out, SCATTERED)
    for line in rule_lines(told):
        _prose(out, f"The rule, {line}")
    for line in worked_out(told):
        _prose(out, f"  {line}")
    if not told.follows:
        _prose(out, "This is not what the rules say: the compiler or the framework has changed.", style=STYLES[WRONG])
    for one in told.lessons:
        _prose(out, f"Read: python -m compare.teach {one.name}, or docs/gallery/{one.name}.html")


def _prose(out: Console, words: str, *, style: str = "") -> None:
    kept = len(words) - len(words.lstrip())
    out.print(wrapped(plain(words), width=text_width(out), indent=" " * kept, hang="    ", style=style))

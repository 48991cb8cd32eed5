"""The result of a search for remedies as a page, and as a section of its run's report; without scripts."""

from pathlib import Path

from jinja2 import TemplateError

from compare.remedy import print_remedies
from compare.remedy.result import SearchResult
from compare.render.blocks import Section, Widget
from compare.render.errors import ViewError
from compare.render.html import read_static, shared_environment, to_html
from compare.run.folder.run_folder import REMEDIES
from meshes.process.documents import read_json
from meshes.process.one_line import one_line


def page(result: SearchResult) -> str:
    """For each arm the ordered list with its code, all compiled programs, and what remains."""
    return (
        shared_environment()
        .get_template("remedy.html.j2")
        .render(found=result, style=read_static("page.css"), words=print_remedies)
    )


def sections(folder: Path) -> list[Section]:
    """The section of a run's page if it has the result of a search.  `ViewError` if that file is of another form."""
    path = folder / REMEDIES[0]
    if not path.is_file():
        return []
    try:
        result = read_json(path)
        page(result)  # the section leads to it
        section = Widget(template="remedy_section.html.j2", values={"found": result, "words": print_remedies})
        to_html([section])
    except (ValueError, LookupError, TypeError, AttributeError, TemplateError) as error:
        why = f"{path.name} is not what compare.remedy --into writes ({one_line(error, most=200)})"
        raise ViewError(f"{why}; delete it, or search again") from None
    title = "code changes that remove avoidable bytes"
    return [Section(anchor="remedies", title=title, link="remedies", blocks=(section,))]

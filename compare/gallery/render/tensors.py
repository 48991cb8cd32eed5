"""The tensors of a lesson, as words and pictures show them: which dims are split over which axes."""

from dataclasses import dataclass

from compare.gallery.lesson_types.lesson import Lesson
from compare.gallery.lesson_types.lesson_result import LessonResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """An array, how it is split, and over which axis it is a partial sum."""

    name: str
    dims: tuple[str, ...]
    sizes: tuple[int, ...]
    axes: tuple[str | None, ...]
    partial: str = ""

    def drawn_dims(self) -> tuple[int, int]:
        """The indices of the dims drawn as rows and columns; -1: none."""
        split = [at for at, axis in enumerate(self.axes) if axis]
        rest = [at for at in reversed(range(len(self.dims))) if at not in split]
        rows, columns = sorted([*split, *rest, -1, -1][:2])
        return rows, columns

    @property
    def words(self) -> str:
        """`x[T, D/tp]`."""
        dims = ", ".join(_split(dim, axis) for dim, axis in zip(self.dims, self.axes, strict=True))
        return f"{self.name}[{dims}]" + ", partial" * bool(self.partial)


def _split(dim: str, axis: str | None) -> str:
    return f"{dim}/{axis}" if axis else dim


def list_tensors(lesson: Lesson, result: LessonResult) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The arguments of a program, the local results of each device, and its results."""
    takes = [_tensor(lesson, name, axes) for name, axes in zip(lesson.takes, result.takes, strict=True)]
    gives = [_tensor(lesson, name, axes) for name, axes in zip(lesson.gives, result.gives, strict=True)]
    alone = [
        Tensor(
            name=tensor.name,
            dims=tuple(tensor.dims.split()),
            sizes=_sizes(lesson, tensor.dims),
            axes=tensor.axes,
            partial=tensor.partial,
        )
        for tensor in lesson.alone
    ]
    return takes, alone, gives


def _tensor(lesson: Lesson, name: str, axes: tuple[str | None, ...]) -> Tensor:
    dims = lesson.arrays[name]
    return Tensor(name=name, dims=tuple(dims.split()), sizes=_sizes(lesson, dims), axes=axes)


def _sizes(lesson: Lesson, dims: str) -> tuple[int, ...]:
    return tuple(int(dim) if dim.isdigit() else lesson.letters.get(dim, 1) for dim in dims.split())

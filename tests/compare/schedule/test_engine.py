"""Who meets when: transfers whose groups take a given time."""

from functools import partial

from compare.schedule.engine import Engine, Instance


class Toy(Engine[Instance]):
    """Three classes, class i with its node i.  groups: (members that each waits for, ns that it takes)."""

    def __init__(self, *groups):
        super().__init__([3, 3, 3])
        self.groups, self.begun = groups, []

    def open(self, transfer, place):
        return Instance(transfer, place, self.groups[place][0])

    def begin(self, instance):
        self.begun.append((instance.place, self.now))
        self.at(self.now + self.groups[instance.place][1], partial(self.end_instance, instance))

    def end_node(self, index, node):
        assert self.ends[index][node] < 0
        self.ends[index][node] = self.now

    def come(self, index, time, *places, is_awaited=True):
        self.at(time, partial(self.join, index, index, 0, places, is_awaited=is_awaited))

    def times(self, name):
        return [getattr(self, name)[index][index] for index in range(3)]


def test_a_class_in_two_groups_ends_with_the_last_and_has_met_when_both_had_come():
    """0 and 1 meet at 10, for 100 ns; 1 and 2 at 30, for 5."""
    toy = Toy((2, 100), (2, 5))
    toy.come(1, 0, 0, 1)
    toy.come(0, 10, 0)
    toy.come(2, 30, 1)
    toy.run()
    assert toy.begun == [(0, 10), (1, 30)]
    assert (toy.times("joined"), toy.times("ends")) == ([10, 30, 30], [110, 110, 35])


def test_a_message_does_not_wait_for_whom_nobody_awaits():
    """Sent at 10, for 50 ns; one receiver comes while it is under way, one when it has arrived."""
    toy = Toy((1, 50))
    toy.come(0, 10, 0)
    toy.come(1, 20, 0, is_awaited=False)
    toy.come(2, 70, 0, is_awaited=False)
    toy.run()
    assert toy.begun == [(0, 10)]
    assert (toy.times("joined"), toy.times("ends")) == ([10, 10, 70], [60, 60, 70])


def test_of_what_happens_at_once_the_lowest_rank_goes_first_and_then_who_asked_first():
    toy, seen = Toy(), []
    for word, time, rank in (("d", 5, 2), ("b", 5, 1), ("c", 5, 1), ("a", 4, 9), ("e", 6, 0)):
        toy.at(time, partial(seen.append, word), rank=rank)
    toy.run()
    assert "".join(seen) == "abcde"

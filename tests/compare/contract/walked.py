"""A step of the reference algorithms, walked message by message: a second derivation of the contract.

Every device says what it sends to whom; nothing is known here of formulas, means or factors.  What the parts of a step
are called is all that this shares with the contract.
"""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil

AXES = ("dp", "pp", "cp", "ep", "tp")


class Walk:
    """One phase of a case: `sent` counts bytes by (scope, kind, axis), over all devices."""

    def __init__(self, case):
        self.case, self.model, self.b = case, case.model, 2 if case.dtype == "bf16" else 4
        self.sizes = [case.mesh.axes[axis] for axis in AXES]
        self.places = list(product(*map(range, self.sizes)))
        self.sent = Counter()
        self.tokens, self.slots = cache(self.tokens), cache(self.slots)  # in each layer the same
        self.split_stream = case.plan.name.endswith("+sp")
        if case.phase == "decode" and len(self.tokens(self.places[0], 0)) % self.size("tp"):
            self.split_stream = False  # tp cannot share these sequences out

    def size(self, axis):
        return self.sizes[AXES.index(axis)]

    def on(self, axis, place):
        return place[AXES.index(axis)]

    def group(self, axis, place):
        at = AXES.index(axis)
        return [(*place[:at], member, *place[at + 1 :]) for member in range(self.sizes[at])]

    def groups(self, axis, devices=None):
        """Each group once, of those that have all their members among the devices."""
        among = self.places if devices is None else devices
        return [g for place in among if (g := self.group(axis, place))[0] == place and set(g) <= set(among)]

    def sequences(self, place, microbatch):
        """Those whose tokens a device has, of one microbatch: dp and ep share a batch out."""
        dp, ep = self.on("dp", place), self.on("ep", place)
        ways = self.size("dp") * self.size("ep")
        all_of_it = range(self.case.batch // self.case.microbatches)
        return [
            (microbatch, index) for index in all_of_it if index * ways // len(all_of_it) == dp * self.size("ep") + ep
        ]

    def tokens(self, place, microbatch):
        ranks, seq = self.size("cp"), self.case.seq
        part = (
            [self.case.seq]
            if self.case.phase == "decode"
            else [p for p in range(seq) if p * ranks // seq == self.on("cp", place)]
        )
        return [(sequence, position) for sequence in self.sequences(place, microbatch) for position in part]

    def count(self, scope, kind, axis, amount):
        self.sent[scope, kind, axis] += amount

    def around(self, what, group, payload, rounds):
        """Chunks of a payload go round a ring: a scatter or a gather in n − 1 rounds, both in twice as many."""
        for _ in range(rounds):
            for _ in group:
                self.count(*what, Fraction(payload, len(group)))

    def sums(self, scope, axis, group, payload, *, split=False):
        n = len(group)
        if n > 1:
            kind = "reduce-scatter" if split else "all-reduce"
            self.around((scope, kind, axis), group, payload, (n - 1) * (1 if split else 2))

    def gathers(self, scope, axis, group, payload):
        if len(group) > 1:
            self.around((scope, "all-gather", axis), group, payload, len(group) - 1)

    def walk(self):
        model, case, stages = self.model, self.case, self.size("pp")
        for microbatch in range(case.microbatches):
            for stage in range(stages):
                here = [place for place in self.places if self.on("pp", place) == stage]
                for _ in range(model.layers // stages):
                    self.layer(here, microbatch)
                if stage < stages - 1:
                    self.hand_on(here, microbatch)
        self.embed()
        self.choose()
        return {what: Fraction(amount) / len(self.places) for what, amount in self.sent.items()}

    def hidden(self, place, microbatch):
        return len(self.tokens(place, microbatch)) * self.model.embed * self.b

    def whole(self, scope, here, microbatch):
        for group in self.groups("tp", here) if self.split_stream else []:
            self.gathers(scope, "tp", group, self.hidden(group[0], microbatch))

    def partial(self, scope, here, microbatch):
        for group in self.groups("tp", here):
            self.sums(scope, "tp", group, self.hidden(group[0], microbatch), split=self.split_stream)

    def layer(self, here, microbatch):
        self.whole("layer.attention.qkv", here, microbatch)
        if self.size("cp") > 1:
            (self.ring if self.case.phase == "prefill" else self.merge)(here, microbatch)
        self.partial("layer.attention.out", here, microbatch)
        if self.model.experts:
            self.whole("layer.moe.route", here, microbatch)
            self.to_experts(here, microbatch)
            self.partial("layer.moe.combine", here, microbatch)
        if not self.model.experts:
            self.whole("layer.mlp.up", here, microbatch)
        if self.model.shared_ffn or not self.model.experts:  # shared experts have the router's tokens
            self.partial("layer.mlp.down", here, microbatch)

    def ring(self, here, microbatch):
        """Each rank hands on what it got last, until each has had the keys and values of all."""
        for group in self.groups("cp", here):
            have = {place: [place] for place in group}
            while any(set(blocks) != set(group) for blocks in have.values()):
                last = {place: blocks[-1] for place, blocks in have.items()}
                for at, place in enumerate(group):
                    have[group[(at + 1) % len(group)]].append(last[place])
                    block = len(self.tokens(last[place], microbatch)) * self.own_kv_heads() * self.model.head_dim
                    self.count("layer.attention.core", "collective-permute", "cp", 2 * block * self.b)

    def own_kv_heads(self):
        """Heads are shared out evenly, copied until they can be."""
        copies = next(n for n in range(1, 999) if n * self.model.kv_heads % self.size("tp") == 0)
        return copies * self.model.kv_heads // self.size("tp")

    def merge(self, here, microbatch):
        """Of every head of every token a maximum, a sum and an output, in float32."""
        for group in self.groups("cp", here):
            heads = len(self.tokens(group[0], microbatch)) * self.model.heads // self.size("tp")
            for numbers in (1, 1, self.model.head_dim):
                self.sums("layer.attention.core", "cp", group, heads * numbers * 4)

    def to_experts(self, here, microbatch):
        """Every device sends every other the slots that its groups have at the other's experts; and gets them back."""
        ep, experts = self.size("ep"), self.model.experts
        for group in self.groups("ep", here) if ep > 1 else []:
            for source, target in product(group, group):
                owned = [e for e in range(experts) if e * ep // experts == self.on("ep", target)]
                if source != target:
                    size = self.slots(source, microbatch) * len(owned) * self.model.embed * self.b
                    self.count("layer.moe.dispatch", "all-to-all", "ep", size)
                    self.count("layer.moe.combine", "all-to-all", "ep", size)

    def slots(self, place, microbatch):
        """That one expert has for a device's tokens: those of one sequence share a capacity, in decode all."""
        tokens = self.tokens(place, microbatch)
        if self.case.phase == "decode":
            groups = [tokens]
        else:
            groups = [[t for t in tokens if t[0] == sequence] for sequence in self.sequences(place, microbatch)]
        return sum(self.capacity(len(group)) for group in groups)

    def capacity(self, tokens):
        if self.case.capacity is None:
            return tokens
        share = Fraction(self.case.capacity) * tokens * self.model.experts_per_token / self.model.experts
        return min(tokens, max(1, ceil(share)))

    def hand_on(self, here, microbatch):
        for place in here:
            size = Fraction(self.hidden(place, microbatch), self.size("tp") if self.split_stream else 1)
            self.count("pipeline.shift", "collective-permute", "pp", size)

    def embed(self):
        first = [place for place in self.places if self.on("pp", place) == 0]
        for group in self.groups("tp", first):
            payload = sum(self.hidden(group[0], m) for m in range(self.case.microbatches))
            self.sums("embed", "tp", group, payload, split=self.split_stream)

    def choose(self):
        """Whoever has the last position chooses the next ids, and sends them to whoever embeds them."""
        last = [
            place
            for place in self.places
            if self.on("pp", place) == self.size("pp") - 1
            and (self.case.phase == "decode" or self.on("cp", place) == self.size("cp") - 1)
        ]
        for group in self.groups("tp", last):
            chosen = sum(len(self.sequences(group[0], m)) for m in range(self.case.microbatches))
            if self.split_stream:
                self.gathers("head", "tp", group, chosen * self.model.embed * self.b)
            self.gathers("sample", "tp", group, len(group) * chosen * (self.b + 4))
        for place in last:
            ids = 4 * sum(len(self.sequences(place, m)) for m in range(self.case.microbatches))
            if self.size("pp") > 1:
                self.count("pipeline.collect", "collective-permute", "pp", ids)
            if self.case.phase == "prefill":
                for _ in range(self.size("cp") - 1):  # each rank hands the ids to the next, but the one that chose
                    self.count("pipeline.collect", "collective-broadcast", "cp", ids)

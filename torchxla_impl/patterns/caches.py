"""Caches of many sequences: a place of each, pages, a window that moves on, and all layers' in one array."""

import torch
import torch.nn.functional as F  # noqa: N812

from torchxla_impl.decoder.scan import scan
from torchxla_impl.decoder.update_slice import update_slice
from torchxla_impl.patterns.pattern import pattern


@pattern(x=("dp", None, None), at=("dp",), out=("dp", None))
def rows_read(x, at):
    rows = torch.arange(len(x), device=x.device)
    return x[rows, at.long()]


@pattern(
    cache=("dp", None, None, None),
    new=("dp", None, None),
    at=("dp",),
    out=("dp", None, None, None),
)
def rows_write(cache, new, at):
    rows = torch.arange(len(cache), device=cache.device)
    return cache.index_put((rows, at.long()), new)


@pattern(
    cache=("dp", None, None, None),
    new=("dp", None, None),
    at=("dp",),
    out=("dp", None, None, None),
)
def rows_write_masked(cache, new, at):
    here = torch.arange(cache.shape[1], device=cache.device) == at[:, None]
    return torch.where(here[:, :, None, None], new[:, None], cache)


@pattern(pages=("dp", None, None), table=("dp", None), out=("dp", None, None, None))
def pages_read(pages, table):
    return pages[table.long()]


@pattern(
    pages=("dp", None, None),
    new=("dp", None),
    page=("dp",),
    slot=("dp",),
    out=("dp", None, None),
)
def pages_write(pages, new, page, slot):
    return pages.index_put((page.long(), slot.long()), new)


@pattern(
    pages=("dp", None, None, None),
    table=("dp", None),
    out=("dp", None, None, None),
)
def pages_replicas(pages, table):
    places = table.long()[:, :, None, None].expand(-1, -1, *pages.shape[2:])
    return torch.gather(pages, 1, places)


@pattern(
    pages=("dp", None, None, None),
    new=("dp", None, None),
    page=("dp", None),
    slot=("dp", None),
    out=("dp", None, None, None),
)
def pages_replicas_write(pages, new, page, slot):
    replicas = torch.arange(len(pages), device=pages.device)
    return pages.index_put((replicas[:, None].expand_as(page), page.long(), slot.long()), new)


@pattern(
    cache=(None, "cp", None, None),
    new=(None, None, None, None),
    out=(None, "cp", None, None),
)
def slide_cat(cache, new):
    return torch.cat([cache[:, 1:], new], dim=1)


@pattern(
    cache=(None, "cp", None, None),
    new=(None, None, None, None),
    out=(None, "cp", None, None),
)
def slide_masked(cache, new):
    moved = F.pad(cache, (0, 0, 0, 0, 0, 1))[:, 1:]
    last = torch.arange(cache.shape[1], device=cache.device) == cache.shape[1] - 1
    return torch.where(last[:, None, None], new, moved)


@pattern(
    x=(None, "tp", None, None),
    cache=(None, None, None, "tp"),
    at=(),
    out=((None, "tp", None, None), (None, None, None, "tp")),
)
def cache_loop_index(x, cache, at):
    def layer(carry, i):
        x, cache = carry
        new = x[:, :, 0].flatten(1)[:, None]  # what this layer keeps of the token
        kept = cache.index_select(0, i).index_copy(2, at.long()[None], new[None])
        cache = cache.index_copy(0, i, kept)
        keys = cache.index_select(0, i)[0].unflatten(2, (-1, x.shape[3]))
        shares = torch.softmax(torch.einsum("bkgh,bskh->bkgs", x, keys), dim=-1)
        return (torch.einsum("bkgs,bskh->bkgh", shares, keys), cache), x[:0]

    layers = torch.arange(len(cache), device=x.device)[:, None]
    return scan(layer, (x, cache), layers)[0]


@pattern(
    x=(None, "tp", None, None),
    cache=(None, None, None, "tp"),
    at=(),
    out=((None, "tp", None, None), (None, None, None, "tp")),
)
def cache_loop_masked(x, cache, at):
    def layer(carry, i):
        x, cache = carry
        new = x[:, :, 0].flatten(1)[:, None]
        here = torch.arange(cache.shape[2], device=x.device) == at
        keys = torch.where(here[:, None], new, cache.index_select(0, i)[0])  # read before it is written
        keys = keys.unflatten(2, (-1, x.shape[3]))
        cache = update_slice(cache, new[None], (i[0], 0, at, 0))
        shares = torch.softmax(torch.einsum("bkgh,bskh->bkgs", x, keys), dim=-1)
        return (torch.einsum("bkgs,bskh->bkgh", shares, keys), cache), x[:0]

    layers = torch.arange(len(cache), device=x.device)[:, None]
    return scan(layer, (x, cache), layers)[0]


@pattern(
    x=(None, "tp", None, None),
    cache=(None, None, "tp", None, None),
    at=(),
    out=((None, "tp", None, None), (None, None, "tp", None, None)),
)
def cache_loop_heads(x, cache, at):
    def layer(carry, i):
        x, cache = carry
        kept = cache.index_select(0, i).index_copy(3, at.long()[None], x[:, :, :1][None])
        cache = cache.index_copy(0, i, kept)
        keys = cache.index_select(0, i)[0]
        shares = torch.softmax(torch.einsum("bkgh,bksh->bkgs", x, keys), dim=-1)
        return (torch.einsum("bkgs,bksh->bkgh", shares, keys), cache), x[:0]

    layers = torch.arange(len(cache), device=x.device)[:, None]
    return scan(layer, (x, cache), layers)[0]

# SPDX-License-Identifier: Apache-2.0
"""BlockLists: which key blocks each block of query rows attends to."""
from collections import namedtuple


class BlockLists(namedtuple("BlockLists", "indices counts mask_block q_len kv_len")):
    """`indices` int32 [batch, q_heads, q_blocks, capacity]: in its first
    counts[b, h, i] slots the numbers of the selected key blocks. `counts` int32
    [batch, q_heads, q_blocks]. Both dense, on the device of q. `mask_block`: rows and
    keys of a block."""
    __slots__ = ()

    @property
    def kv_blocks(self):
        return -(-self.kv_len // self.mask_block[1])

    def density(self):
        """selected / all pairs of blocks; reads the counts."""
        pairs = self.kv_blocks
        for size in self.counts.shape:
            pairs *= size
        return float(self.counts.sum()) / pairs if pairs else 0.0

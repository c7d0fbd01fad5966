# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional.scaled_dot_product_attention's signature over sparse attention.
What sparse attention does not do is refused, never answered densely.
"""
from .ops import attention


def refusal(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, enable_gqa=False):
    """Why sparse attention cannot be what SDPA would compute, or None."""
    if attn_mask is not None:
        return "attn_mask: expected None, since masks of tokens are not supported, got a mask"
    if dropout_p:
        return f"dropout_p: expected 0, got {dropout_p}"
    if query.dim() not in (3, 4):
        return f"query: expected 3 or 4 dimensions, got {query.dim()}"
    if value.shape[-1] != query.shape[-1]:
        return f"value: expected head dimension {query.shape[-1]} as in query, got {value.shape[-1]}"
    if is_causal and query.shape[-2] != key.shape[-2]:
        return (f"is_causal: expected as many keys as queries, since torch aligns the mask at its first row and this "
                f"library at its last, got {query.shape[-2]} queries and {key.shape[-2]} keys")
    if not enable_gqa and query.dim() == 4 and query.shape[1] != key.shape[1]:
        return f"key: expected {query.shape[1]} heads as in query (or enable_gqa=True), got {key.shape[1]}"
    return None


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False, *, config=None, **settings):
    """As torch's, with the blocks that `config` or the settings select. [batch, length,
    head_dim] counts as one head. NotImplementedError names what is not done here:
    masks, dropout, a causal mask of unlike lengths, other head dimensions of value."""
    why = refusal(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if why:
        raise NotImplementedError(why)
    if is_causal:
        settings["causal"] = True
    if scale is not None:
        settings["scale"] = scale
    if query.dim() == 3:
        return attention(*(tensor.unsqueeze(1) for tensor in (query, key, value)), config, **settings).squeeze(1)
    return attention(query, key, value, config, **settings)

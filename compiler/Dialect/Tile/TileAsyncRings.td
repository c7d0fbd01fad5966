// SPDX-License-Identifier: Apache-2.0
//
// Rings: slots of shared memory that roles hand to each other.
#ifndef SPARGEJIT_TILE_ASYNC_RINGS_TD
#define SPARGEJIT_TILE_ASYNC_RINGS_TD

include "compiler/Dialect/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_RingOp : Tile_Op<"ring", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Slots in shared memory and the barriers that hand them on";
  let description = [{
    A slot goes from station to station and back: the loader (station 0) fills
    it, station 1 uses it, … The i-th entry of `passed_by` is the number of warps
    that pass a slot on at station i + 1; the last station's pass gives it back to
    the loader. Station 0 passes a slot on when it has committed it and the
    announced copies have landed.

    Barriers of a slot (one mbarrier for each station):
      station 0 arrives: one thread, with the bytes of its copies; waits: station 1;
      station i arrives: one lane of each of its warps; waits: station i + 1, or
      the loader. Protects: the slot's pieces.

    C1: stands directly in a `tile.kernel`.
    C2: a fixed number of stages is from 1 to 16.
    C3: at least one entry of `passed_by`, each 1 or a multiple of 4 where fixed.
  }];
  let arguments = (ins Tile_SizesAttr:$stages, Tile_SizesAttr:$passed_by);
  let results = (outs Tile_RingType:$result);
  let assemblyFormat = [{
    `stages` custom<Size>($stages) `passed_by` custom<SizeList>($passed_by) attr-dict
    `:` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_RingStartOp : Tile_Op<"ring_start", [Pure]> {
  let summary = "The first slot of a ring, on its first round";
  let results = (outs Tile_CursorType:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}

def Tile_RingNextOp : Tile_Op<"ring_next", [Pure]> {
  let summary = "The slot after this one";
  let arguments = (ins Tile_RingType:$ring, Tile_CursorType:$cursor);
  let results = (outs Tile_CursorType:$result);
  let assemblyFormat = "$ring `[` $cursor `]` attr-dict `:` qualified(type($ring)) `->` qualified(type($result))";
}

def Tile_RingAcquireOp : Tile_Op<"ring_acquire"> {
  let summary = "Station 0 waits until the slot is free";
  let description = [{
    C1: the results are the ring's pieces.
    C2: stands in a one-warp role.
  }];
  let arguments = (ins Tile_RingType:$ring, Tile_CursorType:$cursor);
  let results = (outs Variadic<Tile_SharedType>:$pieces);
  let assemblyFormat = "$ring `[` $cursor `]` attr-dict `:` qualified(type($ring)) `->` qualified(type($pieces))";
  let hasVerifier = 1;
}

def Tile_RingCommitOp : Tile_Op<"ring_commit"> {
  let summary = "Station 0 passes the slot on, to be used when copies have landed";
  let description = [{
    Announces the copies that will fill the `loads` pieces of the slot: they
    follow this op. What is stored to the slot without copies stands before it.

    C1: the loads come from one `tile.ring_acquire` of this ring and cursor.
    C2: the loads are matrices.
  }];
  let arguments = (ins Tile_RingType:$ring, Tile_CursorType:$cursor, Variadic<Tile_SharedType>:$loads);
  let assemblyFormat = [{
    $ring `[` $cursor `]` (`loads` `(` $loads^ `:` qualified(type($loads)) `)`)? attr-dict `:` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def Tile_RingWaitOp : Tile_Op<"ring_wait"> {
  let summary = "A later station waits until the slot has been passed to it";
  let description = [{
    C1: the results are the ring's pieces.
    C2: the station is from 1 to the number of `passed_by` entries.
  }];
  let arguments = (ins Tile_RingType:$ring, Tile_CursorType:$cursor,
                       DefaultValuedAttr<I64Attr, "1">:$station);
  let results = (outs Variadic<Tile_SharedType>:$pieces);
  let assemblyFormat = [{
    $ring `[` $cursor `]` (`station` $station^)? attr-dict `:` qualified(type($ring)) `->` qualified(type($pieces))
  }];
  let hasVerifier = 1;
}

def Tile_RingPiecesOp : Tile_Op<"ring_pieces", [Pure]> {
  let summary = "The pieces of a slot that this role has and has not passed on";
  let description = [{
    C1: the results are the ring's pieces.
  }];
  let arguments = (ins Tile_RingType:$ring, Tile_CursorType:$cursor);
  let results = (outs Variadic<Tile_SharedType>:$pieces);
  let assemblyFormat = "$ring `[` $cursor `]` attr-dict `:` qualified(type($ring)) `->` qualified(type($pieces))";
  let hasVerifier = 1;
}

def Tile_RingReleaseOp : Tile_Op<"ring_release"> {
  let summary = "A later station passes the slot on";
  let description = [{
    Every warp of the role arrives: what it has read has been used, what it has
    stored is seen by the next station.

    C1: the station is from 1 to the number of `passed_by` entries.
    C2: the ring's entry for the station is the role's number of warps.
  }];
  let arguments = (ins Tile_RingType:$ring, Tile_CursorType:$cursor,
                       DefaultValuedAttr<I64Attr, "1">:$station);
  let assemblyFormat = [{
    $ring `[` $cursor `]` (`station` $station^)? attr-dict `:` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def Tile_StoreNoteOp : Tile_Op<"store_note"> {
  let summary = "Writes a few words to shared memory";
  let description = [{
    note[i] = values[i]. Stands in a one-warp role.

    C1: the note is of rank 1 and i32.
    C2: there are as many values as the note has words.
  }];
  let arguments = (ins Variadic<I32>:$values, Tile_SharedType:$note);
  let assemblyFormat = "`(` $values `)` `,` $note attr-dict `:` qualified(type($note))";
  let hasVerifier = 1;
}

def Tile_LoadNoteOp : Tile_Op<"load_note"> {
  let summary = "Reads a few words from shared memory, the same for the whole warp";
  let description = [{
    C1: the note is of rank 1 and i32.
    C2: there are as many results as the note has words.
  }];
  let arguments = (ins Tile_SharedType:$note);
  let results = (outs Variadic<I32>:$values);
  let assemblyFormat = "$note attr-dict `:` qualified(type($note)) `->` type($values)";
  let hasVerifier = 1;
}

#endif

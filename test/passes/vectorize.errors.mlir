// RUN: metadef-opt %s --split-input-file --verify-diagnostics --vectorize

// What cannot be chosen is refused with the field, the rule and the value.

// expected-error @+1 {{field 'rows': expected at most 6 rows with 4 vectors, as there are 32 vector registers for the sums and what they are made of, got 8 in {'rows': 8, 'vectors': 4}}}
func.func @too_many_registers(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>) attributes {metadef.choice = {rows = 8 : i64, vectors = 4 : i64}} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// expected-error @+1 {{field 'rows': expected at most the 64 that the dim (in a box) has, got 65 in {'rows': 65, 'vectors': 1}}}
func.func @more_rows_than_there_are(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>) attributes {metadef.choice = {rows = 65 : i64, vectors = 1 : i64}} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// expected-error @+1 {{metadef.choice: unknown field 'row'; did you mean 'rows'?}}
func.func @no_such_field(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>) attributes {metadef.choice = {row = 4 : i64}} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// expected-error @+1 {{metadef.choice: field 'rows': expected a whole number from 0 on, got 'many'}}
func.func @no_number(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>) attributes {metadef.choice = {rows = "many"}} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// expected-error @+1 {{metadef.choice: expected a dictionary, got 4 : i64}}
func.func @no_dictionary(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>) attributes {metadef.choice = 4 : i64} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// expected-error @+1 {{field 'tiles': expected a size for each of 2 loops, got [4]}}
func.func @tiles_of_other_loops(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>) attributes {metadef.choice = {tiles = array<i64: 4>}} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// expected-error @+1 {{field 'tiles': expected a multiple of 32 lanes, or all, of loop 1, got [4, 40]}}
func.func @half_a_panel(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>) attributes {metadef.choice = {tiles = array<i64: 4, 40>}} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// expected-error @+1 {{field 'tiles': expected 1 to the 64 turns of loop 0, got [0, 32]}}
func.func @an_empty_box(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>) attributes {metadef.choice = {tiles = array<i64: 0, 32>}} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// expected-error @+1 {{field 'chunks': expected less than the 40 turns of a dim, or 0 for all, got [40]}}
func.func @a_chunk_of_all(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>) attributes {metadef.choice = {chunks = array<i64: 40>}} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// expected-error @+1 {{field 'lanes': expected one of the dims 1, 0, 2, got 7}}
func.func @no_such_lanes(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>) attributes {metadef.choice = {lanes = 7 : i64}} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// expected-error @+1 {{field 'copied': expected rows that are cut in chunks and dense along them, got True}}
func.func @copies_of_whole_rows(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>) attributes {metadef.choice = {copied = true}} {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT: one {"path", R"…(text)…"} initialiser for each of TEXTS (paths
# below ROOT), sorted by path. Long texts are cut into adjacent raw literals,
# since compilers limit the length of one.
list(SORT TEXTS)
set(out "")
foreach(path IN LISTS TEXTS)
  file(READ ${ROOT}/${path} text)
  string(APPEND out "{\"${path}\",\n")
  string(LENGTH "${text}" length)
  set(begin 0)
  while(begin LESS length)
    string(SUBSTRING "${text}" ${begin} 8000 piece)
    string(APPEND out "R\"spargejit(${piece})spargejit\"\n")
    math(EXPR begin "${begin} + 8000")
  endwhile()
  string(APPEND out "},\n")
endforeach()
file(WRITE ${OUTPUT} "${out}")

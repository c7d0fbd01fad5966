# SPDX-License-Identifier: Apache-2.0
# The reference of dialects and passes, from the same .td files as the code:
# target spargejit_docs writes docs/*.md in the build folder.
set(SPARGEJIT_DOCS "")

# spargejit_document(<name> <td below the repository> <mlir-tblgen arguments>...)
function(spargejit_document name td)
  get_filename_component(folder ${td} DIRECTORY)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.td)
  set(output ${PROJECT_BINARY_DIR}/docs/${name}.md)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/docs
    COMMAND ${MLIR_TABLEGEN_EXE} ${ARGN} -I ${PROJECT_SOURCE_DIR} -I ${MLIR_INCLUDE_DIRS}
      ${PROJECT_SOURCE_DIR}/${td} -o ${output}
    DEPENDS ${sources} VERBATIM)
  set(SPARGEJIT_DOCS ${SPARGEJIT_DOCS} ${output} PARENT_SCOPE)
endfunction()

spargejit_document(sparge_dialect compiler/Dialect/Sparge/SpargeOps.td
  -gen-dialect-doc -dialect=sparge)
spargejit_document(tile_dialect compiler/Dialect/Tile/TileOps.td
  -gen-dialect-doc -dialect=tile)
spargejit_document(passes compiler/Transforms/Passes.td -gen-pass-doc)
add_custom_target(spargejit_docs ALL DEPENDS ${SPARGEJIT_DOCS})

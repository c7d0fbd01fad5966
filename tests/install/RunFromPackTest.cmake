# SPDX-License-Identifier: Apache-2.0
# A library and a command without the compiler run attention from a pack. It
# starts empty: each miss names a command, which a build with the compiler runs,
# until there is no miss left. Results are compared with plain loops.
file(REMOVE_RECURSE ${PACK})
file(MAKE_DIRECTORY ${PACK})

# Runs a program until it misses nothing; `misses`: how often it may.
function(run_and_fill title misses)
  foreach(round RANGE ${misses})
    # A folder becomes a pack with the first command.
    if(EXISTS ${PACK}/pack.json)
      set(ENV{SPARGEJIT_PACK} ${PACK})
    endif()
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status
      OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(status EQUAL 0)
      if(NOT round EQUAL misses)
        message(FATAL_ERROR "${title}: expected ${misses} misses, got ${round}")
      endif()
      message(STATUS "${title}: right, after ${misses} misses")
      return()
    endif()
    if(NOT output MATCHES "`spargejit (compile method:[^`]*) -o DIR` makes all that this call needs")
      message(FATAL_ERROR "${title} failed with ${status} and names no command:\n${output}")
    endif()
    separate_arguments(words UNIX_COMMAND "${CMAKE_MATCH_1}")
    message(STATUS "${title}: a miss; spargejit ${CMAKE_MATCH_1}")
    unset(ENV{SPARGEJIT_PACK})
    execute_process(COMMAND ${COMPILING_COMMAND} ${words} -o ${PACK}
      RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "the command that the miss names failed with ${status}:\n${output}")
    endif()
  endforeach()
  message(FATAL_ERROR "${title}: still a miss after ${misses} commands")
endfunction()

# Dense attention, and a selection.
run_and_fill("consumer" 2 ${WORK}/build/consumer pack)
# Against the float64 reference.
run_and_fill("float32, causal" 1
  ${COMMAND} check --synthetic 1,2,700,64 --method topk --top-k 0.2 --causal)
run_and_fill("bfloat16, narrow blocks" 1
  ${COMMAND} check --synthetic 2,2,501,128 --dtype bfloat16 --mask-block 128x16
  --method spargeattention2 --top-k 0.1 --top-p 0.3)
# Other lengths and heads need nothing new.
run_and_fill("other lengths" 0
  ${COMMAND} check --synthetic 1,3,1300,128 --dtype bfloat16 --mask-block 128x16
  --method spargeattention2 --top-k 0.05 --top-p 0.5)

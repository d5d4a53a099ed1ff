# What lies below L1; the folder's CMakeLists.txt puts these into fw_timing and test_timing.
set(FW_MEMORY_SOURCES address_map.cpp crossbar.cpp hbm_channel.cpp l2_slice.cpp memory.cpp)
set(FW_MEMORY_TESTS)

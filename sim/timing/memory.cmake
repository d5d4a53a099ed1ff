# What lies below L1; the folder's CMakeLists.txt puts these into fw_timing and test_timing.
set(FW_MEMORY_SOURCES address_map.cpp crossbar.cpp hbm_channel.cpp l2_slice.cpp memory.cpp memory_paths.cpp memory_touch.cpp)
set(FW_MEMORY_TESTS address_map_test.cpp crossbar_test.cpp distances_test.cpp event_queue_test.cpp hbm_channel_test.cpp l2_slice_test.cpp
    memory_test.cpp memory_load_test.cpp)

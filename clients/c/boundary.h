// Additional declarations for Go: the types of the public header in a form that cgo can express, so that the compiler checks the exported
// functions against their declarations, and functions that must be in C.
#ifndef VOLSFU_BOUNDARY_H_
#define VOLSFU_BOUNDARY_H_

#include "volsfu.h"

typedef const char volsfu_text;
typedef const void volsfu_bytes;
typedef const volsfu_config volsfu_config_in;
typedef const volsfu_publication volsfu_publication_in;
typedef const volsfu_outgoing_frame volsfu_outgoing_frame_in;
typedef const volsfu_pose volsfu_pose_in;
typedef const volsfu_choice volsfu_choice_in;
typedef const volsfu_viewpoint volsfu_viewpoint_in;
typedef const volsfu_encoding volsfu_encoding_in;
typedef const volsfu_points volsfu_points_in;
typedef const volsfu_sound volsfu_sound_in;
typedef const volsfu_outgoing_message volsfu_outgoing_message_in;
typedef const float volsfu_samples;
typedef void volsfu_buffer;

// Functions for Go only are not part of the library's interface.
#if defined(_WIN32)
#define VOLSFU_HIDDEN
#else
#define VOLSFU_HIDDEN __attribute__((visibility("hidden")))
#endif

// Stores a text of the given length as the calling thread's last message. A text that is too long is cut off.
VOLSFU_HIDDEN void volsfu_boundary_note(const char *text, size_t length);

// Returns NULL if there is no memory. Unlike C.malloc, it does not end the process then.
VOLSFU_HIDDEN void *volsfu_boundary_allocate(size_t size);

#endif

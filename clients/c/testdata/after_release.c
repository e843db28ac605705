// Reads a frame after its release, which a sanitizer must detect.
#include <stdio.h>

#include "volsfu.h"

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  volsfu_config config;
  VOLSFU_INIT(config);
  config.url = argv[1];
  config.room = argv[2];
  config.identity = "mallory";
  config.flags = VOLSFU_RECEIVE;
  volsfu_session session = 0;
  volsfu_frame frame;
  VOLSFU_INIT(frame);
  if (volsfu_connect(&config, &session) != VOLSFU_OK) return 3;
  do {
    if (frame.handle != 0 && volsfu_release_frame(&frame) != VOLSFU_OK) return 4;
    if (volsfu_next_frame(session, VOLSFU_FOREVER, &frame) != VOLSFU_OK) return 5;
  } while (frame.length == 0);
  const uint8_t *data = frame.data;
  printf("first byte %d\n", data[0]);
  if (volsfu_release_frame(&frame) != VOLSFU_OK) return 6;
  printf("and again %d\n", data[0]);
  return 0;
}

// Two participants in one program: a tone goes from one to the other, as do data messages and an attribute: talk URL PASSPHRASE CA_FILE. The last two
// arguments may be empty. It prints a line for each step.
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "volsfu.h"

#define PACKET 960
#define WINDOW (10 * PACKET)
static const double pi = 3.14159265358979;

static void expect(int line, const char *call, int32_t got, int32_t want) {
  if (got == want) return;
  printf("line %d: %s: %d (%s), expected %d\n", line, call, got, volsfu_last_message(), want);
  exit(1);
}

#define EXPECT(want, call) expect(__LINE__, #call, (call), (want))
#define CHECK(condition) expect(__LINE__, #condition, (condition) ? VOLSFU_OK : VOLSFU_E_INTERNAL, VOLSFU_OK)

static volsfu_session enter(char **argv, const char *identity) {
  volsfu_config config;
  VOLSFU_INIT(config);
  config.url = argv[1];
  config.room = "talk";
  config.identity = identity;
  config.flags = VOLSFU_RECEIVE;
  if (argv[2][0] != '\0') config.passphrase = argv[2];
  if (argv[3][0] != '\0') config.ca_file = argv[3];
  config.request_ms = 60000;
  volsfu_session session = 0;
  EXPECT(VOLSFU_OK, volsfu_connect(&config, &session));
  return session;
}

// Returns the amplitude of 440 Hz in a window of samples.
static double amplitude(const float *samples) {
  double sine = 0, cosine = 0;
  for (int i = 0; i < WINDOW; i++) {
    sine += samples[i] * sin(2 * pi * 440 * i / 48000);
    cosine += samples[i] * cos(2 * pi * 440 * i / 48000);
  }
  return 2 * hypot(sine, cosine) / WINDOW;
}

// Speaks and plays in real time until the tone is heard.
static void sound(volsfu_session ada, volsfu_session bob) {
  volsfu_sound description;
  VOLSFU_INIT(description);
  description.name = "voice";
  volsfu_publisher voice = 0;
  volsfu_listener listener = 0, second = 0;
  EXPECT(VOLSFU_OK, volsfu_listen(bob, "ada", "voice", &listener));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_listen(bob, "ada", "voice", &second));
  EXPECT(VOLSFU_OK, volsfu_publish_sound(ada, &description, &voice));
  volsfu_outgoing_frame frame;
  VOLSFU_INIT(frame);
  EXPECT(VOLSFU_E_KIND, volsfu_write_frame(voice, 0, 0, &frame));
  static float spoken[PACKET], heard[WINDOW];
  const struct timespec pause = {0, 20000000};
  for (long packet = 0;; packet++) {
    for (int i = 0; i < PACKET; i++) spoken[i] = (float)(0.25 * sin(2 * pi * 440 * (double)(packet * PACKET + i) / 48000));
    int32_t status = volsfu_write_sound(voice, spoken, PACKET, 0);
    CHECK(status == VOLSFU_OK || status == VOLSFU_E_NOT_CONNECTED);
    memmove(heard, heard + PACKET, sizeof heard - PACKET * sizeof heard[0]);
    size_t count = 0;
    EXPECT(VOLSFU_OK, volsfu_read_sound(listener, heard + WINDOW - PACKET, PACKET, &count));
    CHECK(count <= PACKET);
    const double loud = amplitude(heard);
    if (loud > 0.2 && loud < 0.3) break;
    nanosleep(&pause, NULL);
  }
  printf("sound\n");
  EXPECT(VOLSFU_OK, volsfu_end_listening(listener));
  EXPECT(VOLSFU_E_HANDLE, volsfu_end_listening(listener));
  EXPECT(VOLSFU_E_HANDLE, volsfu_read_sound(listener, heard, PACKET, NULL));
  EXPECT(VOLSFU_OK, volsfu_listen(bob, "ada", "voice", &second));
  EXPECT(VOLSFU_OK, volsfu_unpublish(voice));
}

static void messages(volsfu_session ada, volsfu_session bob) {
  const char *everyone[] = {"bob", "nobody"};
  volsfu_outgoing_message out;
  VOLSFU_INIT(out);
  out.topic = "chat";
  out.to = everyone;
  out.to_count = 2;
  out.data = "guten Abend";
  out.length = strlen("guten Abend");
  EXPECT(VOLSFU_REFUSED_NOT_FOUND, volsfu_send_message(ada, &out));
  out.to_count = 1;
  out.flags = VOLSFU_BINARY;
  out.data = "\x00\xff";
  out.length = 2;
  EXPECT(VOLSFU_OK, volsfu_send_message(ada, &out));
  out.flags = VOLSFU_LOSSY;
  out.data = "perhaps";
  out.length = strlen("perhaps");
  EXPECT(VOLSFU_OK, volsfu_send_message(ada, &out));
  volsfu_message in, other;
  VOLSFU_INIT(in);
  VOLSFU_INIT(other);
  EXPECT(VOLSFU_OK, volsfu_next_message(bob, 60000, &in));
  CHECK(in.flags == 0 && strcmp(in.participant, "ada") == 0 && strcmp(in.topic, "chat") == 0 && in.missed == 0);
  CHECK(in.length == strlen("guten Abend") && strcmp((const char *)in.data, "guten Abend") == 0);
  EXPECT(VOLSFU_E_HELD, volsfu_next_message(bob, 0, &in));
  EXPECT(VOLSFU_OK, volsfu_next_message(bob, 60000, &other));
  CHECK(other.flags == VOLSFU_BINARY && other.length == 2 && memcmp(other.data, "\x00\xff", 2) == 0);
  EXPECT(VOLSFU_OK, volsfu_release_message(&in));
  EXPECT(VOLSFU_E_HANDLE, volsfu_release_message(&in));
  EXPECT(VOLSFU_OK, volsfu_next_message(bob, 60000, &in));
  CHECK(in.flags == VOLSFU_LOSSY && strcmp((const char *)in.data, "perhaps") == 0);
  EXPECT(VOLSFU_OK, volsfu_release_message(&in));
  EXPECT(VOLSFU_E_TIMEOUT, volsfu_next_message(bob, 0, &in));
  printf("messages\n");
  EXPECT(VOLSFU_OK, volsfu_release_message(&other));
}

static void attributes(volsfu_session ada, volsfu_session bob) {
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_attributes(ada, NULL, "{\"color\": 1}"));
  EXPECT(VOLSFU_REFUSED_NOT_FOUND, volsfu_set_attributes(ada, "nobody", "{\"color\": \"blue\"}"));
  EXPECT(VOLSFU_OK, volsfu_set_attributes(ada, NULL, "{\"color\": \"red\"}"));
  volsfu_event event;
  VOLSFU_INIT(event);
  for (int done = 0; !done;) {
    EXPECT(VOLSFU_OK, volsfu_next_event(bob, 60000, &event));
    done = event.kind == VOLSFU_EVENT_ATTRIBUTES && strcmp(event.participant, "ada") == 0 && strcmp(event.json, "{\"color\":\"red\"}") == 0;
    EXPECT(VOLSFU_OK, volsfu_release_event(&event));
  }
  printf("attributes\n");
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  setbuf(stdout, NULL);
  volsfu_session ada = enter(argv, "ada"), bob = enter(argv, "bob");
  sound(ada, bob);
  messages(ada, bob);
  attributes(ada, bob);
  EXPECT(VOLSFU_OK, volsfu_close(bob));
  EXPECT(VOLSFU_OK, volsfu_close(ada));
  printf("closed\n");
  return 0;
}

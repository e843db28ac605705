/*
 * A stand-in for VR2Gather's native connector, for tests: it speaks to the peer beside it by UDP datagrams of 1,300 bytes as the native one does,
 * and is as strict. It is told on standard input what to send, and says on standard output what it sent and received.
 *
 *   connector PORT CLIENT     PORT is the peer's, the connector listens on the one behind it
 *
 * Commands: listen; tiles COUNT BYTES MICROSECONDS TILES QUALITIES; audio COUNT BYTES MICROSECONDS; control TEXT; garbage COUNT; quit. Nothing is
 * received before listen, as long as the native one's socket is not there yet.
 *
 * Lines: listening; ready; sent KIND TILE QUALITY BYTES HASH; received KIND CLIENT TILE QUALITY NUMBER BYTES HASH; rejected KIND CLIENT TILE NUMBER;
 * broken KIND CLIENT TILE NUMBER REASON; done COMMAND. KIND is tile or audio, HASH is 64 bits of FNV-1a over the whole frame.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DATAGRAM = 1300, BUFFER = 1500, READY = 0, TILE = 1, AUDIO = 2, CONTROL = 3 };
enum { TILE_HEADER = 28, AUDIO_HEADER = 20, TILE_DATA = 1144, AUDIO_DATA = 1152, FRAME_HEADER = 16 };
enum { STREAMS = 256, UNDER_WAY = 8, MAX_FRAME = 64 << 20 };

/* A frame that is being received. It is complete when as many bytes came as it is long: a piece that comes twice spoils it. */
struct partial {
	int used;
	uint32_t number, length, quality, received;
	uint8_t *data;
};

/* What came of one tile, or of the sound, of one client. */
struct stream {
	uint32_t type, client, tile;
	int delivered;
	uint32_t newest;
	struct partial under_way[UNDER_WAY];
};

static int conn;
static struct sockaddr_in peer;
static uint32_t own;
static struct stream streams[STREAMS];
static int stream_count;

static void put32(uint8_t *to, uint32_t v) {
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get32(const uint8_t *from) {
	return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static uint64_t hash(const uint8_t *data, size_t size) {
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < size; i++)
		h = (h ^ data[i]) * 1099511628211u;
	return h;
}

static const char *kind(uint32_t type) { return type == AUDIO ? "audio" : "tile"; }

static void transmit(const uint8_t datagram[DATAGRAM]) {
	if (sendto(conn, datagram, DATAGRAM, 0, (struct sockaddr *)&peer, sizeof peer) != DATAGRAM)
		perror("sendto");
}

static struct stream *stream_of(uint32_t type, uint32_t client, uint32_t tile) {
	for (int i = 0; i < stream_count; i++)
		if (streams[i].type == type && streams[i].client == client && streams[i].tile == tile)
			return &streams[i];
	if (stream_count == STREAMS)
		return NULL;
	struct stream *s = &streams[stream_count++];
	s->type = type, s->client = client, s->tile = tile;
	return s;
}

static void broken(struct stream *s, uint32_t number, const char *reason) {
	printf("broken %s %" PRIu32 " %" PRIu32 " %" PRIu32 " %s\n", kind(s->type), s->client, s->tile, number, reason);
}

static void forget(struct partial *p) {
	free(p->data);
	memset(p, 0, sizeof *p);
}

/* find returns the frame of that number, or room for it. The oldest is lost where there is none. */
static struct partial *find(struct stream *s, uint32_t number, uint32_t length, uint32_t quality) {
	struct partial *free_one = NULL, *oldest = NULL;
	for (int i = 0; i < UNDER_WAY; i++) {
		struct partial *p = &s->under_way[i];
		if (p->used && p->number == number)
			return p;
		if (!p->used)
			free_one = p;
		else if (oldest == NULL || p->number < oldest->number)
			oldest = p;
	}
	if (free_one == NULL) {
		broken(s, oldest->number, "incomplete");
		forget(oldest);
		free_one = oldest;
	}
	free_one->used = 1;
	free_one->number = number, free_one->length = length, free_one->quality = quality;
	free_one->data = calloc(1, length > 0 ? length : 1);
	return free_one;
}

/* deliver hands over a frame. Those that are older can never be complete any more. */
static void deliver(struct stream *s, struct partial *p) {
	printf("received %s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %016" PRIx64 "\n", kind(s->type), s->client, s->tile, p->quality,
	       p->number, p->length, hash(p->data, p->length));
	s->newest = p->number, s->delivered = 1;
	forget(p);
	for (int i = 0; i < UNDER_WAY; i++)
		if (s->under_way[i].used && s->under_way[i].number < s->newest) {
			broken(s, s->under_way[i].number, "incomplete");
			forget(&s->under_way[i]);
		}
}

static void take(uint32_t type, const uint8_t *body, size_t size) {
	const size_t header = type == AUDIO ? AUDIO_HEADER : TILE_HEADER;
	if (size < header)
		return;
	uint32_t client = get32(body), number = get32(body + 4), length = get32(body + 8), offset = get32(body + 12), piece = get32(body + 16);
	uint32_t tile = type == AUDIO ? 0 : get32(body + 20), quality = type == AUDIO ? 0 : get32(body + 24);
	struct stream *s = stream_of(type, client, tile);
	if (s == NULL)
		return;
	if (piece > size - header || length > MAX_FRAME || (uint64_t)offset + piece > length) {
		broken(s, number, "malformed");
		return;
	}
	if (s->delivered && number <= s->newest) {
		printf("rejected %s %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", kind(type), client, tile, number);
		return;
	}
	struct partial *p = find(s, number, length, quality);
	if (p->quality != quality || p->length != length) {
		broken(s, number, "mixed");
		forget(p);
		p = find(s, number, length, quality);
	}
	memcpy(p->data + offset, body + header, piece);
	p->received += piece;
	if (p->received == p->length)
		deliver(s, p);
	else if (p->received > p->length) {
		broken(s, number, "duplicate");
		forget(p);
	}
}

static void *receive(void *unused) {
	uint8_t datagram[BUFFER];
	int greeted = 0;
	for (;;) {
		ssize_t size = recv(conn, datagram, sizeof datagram, 0);
		if (size < 4)
			continue;
		uint32_t type = get32(datagram);
		if (type == READY) {
			uint8_t zeros[DATAGRAM] = {0};
			transmit(zeros);
			if (!greeted)
				printf("ready\n");
			greeted = 1;
		} else if (type == TILE || type == AUDIO)
			take(type, datagram + 4, (size_t)size - 4);
	}
	return unused;
}

static void begin_listening(uint16_t port) {
	struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_ANY)};
	pthread_t thread;
	conn = socket(AF_INET, SOCK_DGRAM, 0);
	if (conn < 0 || bind(conn, (struct sockaddr *)&local, sizeof local) != 0) {
		perror("bind");
		exit(1);
	}
	if (pthread_create(&thread, NULL, receive, NULL) != 0) {
		fprintf(stderr, "no thread\n");
		exit(1);
	}
	printf("listening\n");
}

/* fill makes a frame that no other one is like: VR2Gather's header, and numbers that look random. */
static void fill(uint8_t *frame, uint32_t size, uint32_t type, uint32_t seed, uint64_t milliseconds) {
	memcpy(frame, type == AUDIO ? "A2RV" : "0iwc", 4);
	put32(frame + 4, size - FRAME_HEADER);
	put32(frame + 8, (uint32_t)milliseconds);
	put32(frame + 12, (uint32_t)(milliseconds >> 32));
	uint64_t state = ((uint64_t)own << 40 | seed) * 6364136223846793005u + 1442695040888963407u;
	for (uint32_t i = FRAME_HEADER; i < size; i++) {
		state ^= state << 13, state ^= state >> 7, state ^= state << 17;
		frame[i] = (uint8_t)(state >> 32);
	}
}

/* cut sends a frame in pieces. */
static void cut(const uint8_t *frame, uint32_t size, uint32_t type, uint32_t number, uint32_t tile, uint32_t quality) {
	const uint32_t header = type == AUDIO ? AUDIO_HEADER : TILE_HEADER, most = type == AUDIO ? AUDIO_DATA : TILE_DATA;
	for (uint32_t offset = 0; offset < size; offset += most) {
		uint8_t datagram[DATAGRAM] = {0};
		uint32_t piece = size - offset < most ? size - offset : most;
		uint32_t fields[] = {type, own, number, size, offset, piece, tile, quality};
		for (uint32_t i = 0; i <= header / 4; i++)
			put32(datagram + 4 * i, fields[i]);
		memcpy(datagram + 4 + header, frame + offset, piece);
		transmit(datagram);
	}
}

static void send_frames(uint32_t type, uint32_t count, uint32_t size, uint32_t microseconds, uint32_t tiles, uint32_t qualities) {
	static uint32_t numbers[2], seed;
	struct timespec next, now;
	uint8_t *frame = malloc(size);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (uint32_t i = 0; i < count; i++) {
		clock_gettime(CLOCK_REALTIME, &now);
		uint64_t milliseconds = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
		uint32_t number = numbers[type == AUDIO]++;
		for (uint32_t tile = 0; tile < tiles; tile++)
			for (uint32_t quality = 0; quality < qualities; quality++) {
				fill(frame, size, type, seed++, milliseconds);
				cut(frame, size, type, number, tile, quality);
				printf("sent %s %" PRIu32 " %" PRIu32 " %" PRIu32 " %016" PRIx64 "\n", kind(type), tile, quality, size, hash(frame, size));
			}
		next.tv_nsec += (long)microseconds * 1000;
		next.tv_sec += next.tv_nsec / 1000000000, next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	free(frame);
}

/* send_garbage sends what no peer can read: random bytes of all lengths, and headers that claim what is not there. */
static void send_garbage(uint32_t count) {
	for (uint32_t i = 0; i < count; i++) {
		uint8_t datagram[BUFFER];
		size_t size = (size_t)random() % sizeof datagram;
		for (size_t j = 0; j < size; j++)
			datagram[j] = (uint8_t)random();
		if (i % 2 == 0 && size >= 4) {
			put32(datagram, TILE + i / 2 % 2);
			if (size >= 24)
				put32(datagram + 20, 0xffffffff);
		} else if (size >= 4)
			put32(datagram, 4 + (uint32_t)random() % 1000);
		sendto(conn, datagram, size, 0, (struct sockaddr *)&peer, sizeof peer);
	}
}

static void send_control(const char *text) {
	uint8_t datagram[DATAGRAM] = {0};
	put32(datagram, CONTROL);
	size_t size = strnlen(text, DATAGRAM - 5);
	memcpy(datagram + 4, text, size);
	transmit(datagram);
}

int main(int argc, char **argv) {
	char line[2048];
	if (argc != 3) {
		fprintf(stderr, "usage: connector PORT CLIENT\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	uint16_t port = (uint16_t)atoi(argv[1]);
	own = (uint32_t)strtoul(argv[2], NULL, 10);
	peer = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	while (fgets(line, sizeof line, stdin) != NULL) {
		uint32_t count, size, microseconds, tiles, qualities;
		line[strcspn(line, "\n")] = 0;
		if (strcmp(line, "quit") == 0)
			return 0;
		if (strcmp(line, "listen") == 0)
			begin_listening((uint16_t)(port + 1));
		else if (sscanf(line, "tiles %u %u %u %u %u", &count, &size, &microseconds, &tiles, &qualities) == 5 && size >= FRAME_HEADER)
			send_frames(TILE, count, size, microseconds, tiles, qualities);
		else if (sscanf(line, "audio %u %u %u", &count, &size, &microseconds) == 3 && size >= FRAME_HEADER)
			send_frames(AUDIO, count, size, microseconds, 1, 1);
		else if (sscanf(line, "garbage %u", &count) == 1)
			send_garbage(count);
		else if (strncmp(line, "control ", 8) == 0)
			send_control(line + 8);
		else {
			fprintf(stderr, "cannot read: %s\n", line);
			return 2;
		}
		printf("done %s\n", line);
	}
	return 0;
}

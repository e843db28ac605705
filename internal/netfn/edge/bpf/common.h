/* Definitions that the sender's and the receiver's programs share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Return values of programs at TC hooks, the same for TCX and clsact. */
#define NEXT (-1) /* the next program or the stack decides */
#define SHOT 2    /* drop */

#define PATHS 8
#define RULES 16
#define FLOWS 256
#define PREFIXES 1024

/* The data header, see package wire. */
#define HEADER_VERSION 1
#define KIND_SINGLE 0
#define KIND_ID 1
#define KIND_SEQUENCE 2
#define KIND_HELLO 8
#define KIND_REPORT 9

struct header {
	__u8 kind; /* version in the high 4 bits */
	__u8 path;
	__u8 set;
	__u8 flow;
	__be16 end;
	__be16 epoch;
	__be32 base;
	__be32 sent;
};

/* The bytes that the encapsulation adds in front of the inner packet. */
struct outer4 {
	struct iphdr ip;
	struct udphdr udp;
	struct header header;
};

struct outer6 {
	struct ipv6hdr ip;
	struct udphdr udp;
	struct header header;
};

#define ETHER ((__u32)sizeof(struct ethhdr))
#define BARE 0 /* devices without a link header */

#define FRAGMENT 0x3fff /* more fragments, or an offset */
#define DONT_FRAGMENT 0x4000

#define ECN 3
#define ECT1 1
#define ECT0 2
#define CE 3

/*
 * FIXED keeps the compiler from merging a pointer of two branches into one with a variable offset, which the verifier
 * refuses without CAP_PERFMON.
 */
#define FIXED(pointer) asm volatile("" : "+r"(pointer))

/*
 * A loop that the compiler unrolls. Without CAP_PERFMON, the verifier also follows the branches that a processor may take
 * by mistake, and there the counter of a loop has no bound.
 */
#define EACH(i, count) _Pragma("clang loop unroll(full)") for (__u32 i = 0; i < (count); i++)

/*
 * The verifier examines a function with EXTERN once, not at each call. The function must check its pointers, which the
 * verifier takes for possibly null.
 */
#define EXTERN __noinline

#define COUNT(counter)                     \
	do {                               \
		__u64 *count = &(counter); \
		FIXED(count);              \
		++*count;                  \
	} while (0)

/* IPv6 address, or IPv4 address as ::ffff:a.b.c.d. */
struct address {
	__be32 words[4];
};

/* An address within the maps, which Go has as bytes. */
#define ADDRESS(name) __u8 name[16] __attribute__((aligned(4)))

/* Key of the tries of prefixes. */
struct prefix {
	__u32 bits; /* of the address: 96 more than the length of an IPv4 prefix */
	__u8 address[16];
};

/* A stamped packet has its path and a code of the epoch, which is not 0, in the DSCP. */
static __always_inline __u32 stamp_of_epoch(__u32 epoch) { return 1 + epoch % 7; }

static __always_inline void map_ipv4(struct address *address, __be32 ipv4)
{
	address->words[0] = 0;
	address->words[1] = 0;
	address->words[2] = bpf_htonl(0xffff);
	address->words[3] = ipv4;
}

static __always_inline void copy_ipv6(struct address *address, const struct in6_addr *ipv6)
{
	address->words[0] = ipv6->in6_u.u6_addr32[0];
	address->words[1] = ipv6->in6_u.u6_addr32[1];
	address->words[2] = ipv6->in6_u.u6_addr32[2];
	address->words[3] = ipv6->in6_u.u6_addr32[3];
}

static __always_inline __u32 mix(__u32 hash, __u32 word)
{
	hash = (hash ^ word) * 0x9e3779b1; /* 2^32 divided by the golden ratio, odd */
	return hash ^ hash >> 15;
}

/* hash_flow is the hash of the fields that identify a transport connection. Both edges compute the same. */
static __always_inline __u32 hash_flow(const struct address *source, const struct address *destination, __u32 protocol,
				       __u32 ports)
{
	__u32 hash = mix(protocol, ports);
	hash = mix(hash, source->words[3]);
	hash = mix(hash, destination->words[3]);
	hash = mix(hash, source->words[0] ^ source->words[1] ^ source->words[2]);
	hash = mix(hash, destination->words[0] ^ destination->words[1] ^ destination->words[2]);
	return hash ^ hash >> 16;
}

/* replace16 updates an internet checksum for a 16-bit field that changes (RFC 1624). */
static __always_inline __sum16 replace16(__sum16 check, __be16 from, __be16 to)
{
	__u32 sum = (__u16)~check + (__u16)~from + to;
	sum = (sum & 0xffff) + (sum >> 16);
	return ~((sum & 0xffff) + (sum >> 16));
}

/* set_tos writes DSCP and ECN of an IPv4 header. */
static __always_inline void set_tos(struct iphdr *ip, __u8 tos)
{
	__u32 version = *(__u8 *)ip;
	ip->check = replace16(ip->check, bpf_htons(version << 8 | ip->tos), bpf_htons(version << 8 | tos));
	ip->tos = tos;
}

static __always_inline __u8 get_tos6(const struct ipv6hdr *ip)
{
	const __u8 *bytes = (const __u8 *)ip;
	return bytes[0] << 4 | bytes[1] >> 4;
}

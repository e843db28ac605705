//go:build ignore

/*
 * The receiver of a pair: passes the first copy of each packet, without encapsulation, and drops repeats.
 *
 * receive_xdp runs at native XDP. Devices without native XDP take receive_ether or receive_bare at TC ingress. Generic
 * XDP is not used: it runs after the network stack has looked at the outer packet, and takes the bytes at the place of
 * the EtherType for one on devices without a link header.
 */
#include "common.h"

#define WORDS 1024
/* Another processor has changed the word each time: more than processors that work on one flow at the same time. */
#define ATTEMPTS 8

#define ROUND_BITS 17
#define HALF_ROUND (1 << (ROUND_BITS - 1))

#define SECOND 1000000000ULL

/* The packet type of frames for another hardware address. */
#define OTHERHOST 3

/* Since Linux 6.3, and only needed if the outer and inner IP versions differ. */
#define DECAP_L3_IPV4 (1ULL << 7)
#define DECAP_L3_IPV6 (1ULL << 8)

struct config {
	__u32 divisor; /* a number is sampled if it is a multiple: a power of two, or 0 for no samples */
	__u16 epoch;   /* of the sender, as its authenticated hello says; 0: unknown */
	__u16 port;
};

/* Addresses of outer packets that are accepted. */
struct source {
	ADDRESS(remote);
	ADDRESS(local);
};

struct received {
	__u64 packets;
	__u64 bytes; /* of outer IP packets */
	__u64 first;
	__u64 repeated;
	__u64 outside;   /* of the window, or of another epoch: passed */
	__u64 malformed; /* dropped */
	__u64 refused;   /* the inner source is not accepted: dropped */
	__u64 congested; /* outer CE, inner Not-ECT: dropped (RFC 6040) */
};

struct ignored {
	__u64 foreign; /* UDP to the port between other addresses, or for another hardware address: left to the stack */
	__u64 control;
	__u64 lost_samples;
};

struct sample {
	__u64 arrived_ns;
	__u32 number;
	__u32 sent_us;
	__u16 epoch;
	__u16 size; /* of the outer IP packet */
	__u8 flow;
	__u8 path;
	__u8 set;
	__u8 first; /* 1: first copy, 0: repeat */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct config);
} receive_config SEC(".maps");

/*
 * The value is the hardware address of the device on which copies arrive, or 0 for any. A frame for another address, which
 * a switch has flooded, must not become the first copy: the stack drops it after the program.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, struct source);
	__type(value, __u8[ETH_ALEN]);
} sources SEC(".maps");

/* Inner source prefixes that are accepted. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, PREFIXES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, struct prefix);
	__type(value, __u32);
} inner SEC(".maps");

/* The words of all flows' windows, see package window. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS * WORDS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, __u64);
} windows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PATHS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct received);
} received SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct ignored);
} ignored SEC(".maps");

/* 256 kB hold 8,192 records of 32 bytes, 8 of which are the record's header: 2 s at 4,000 samples per second. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(value, struct sample);
} samples SEC(".maps");

/*
 * The variables of one run. On the stack, each would cost a barrier against speculation for users without CAP_PERFMON.
 * Runs on one processor do not interrupt each other.
 */
struct scratch {
	struct source source;
	struct prefix prefix; /* of the inner source address */
	struct sample facts;
	__u32 path;
	__u8 outer; /* IP versions */
	__u8 inner;
	__u8 inner_tos;
	__u8 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* Stamped packets: the greatest number of each flow, from which the upper 16 bits of a number follow. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, __u32);
} stamps SEC(".maps");

/* The paper's filter: the time at which an IP identification was last passed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, __u64);
} paper SEC(".maps");

enum verdict { FIRST, REPEAT, OUTSIDE };

/* What becomes of a packet. */
enum action {
	LEAVE, /* to the network stack, unchanged */
	DROP,
	OPEN, /* to the network stack, without encapsulation */
};

/* judge decides on a number of the present epoch, and remembers it. */
EXTERN int judge(__u32 flow, __u32 epoch, __u32 number)
{
	__u32 key = flow * WORDS + (number >> 5) % WORDS;
	__u64 *word = bpf_map_lookup_elem(&windows, &key);
	if (!word)
		return OUTSIDE;
	__u32 tag = epoch << ROUND_BITS | number >> (32 - ROUND_BITS);
	__u32 bit = 1U << (number & 31);
	__u64 fresh = (__u64)tag << 32 | bit;
	__u64 old = *(volatile __u64 *)word;
	EACH(i, ATTEMPTS) {
		__u32 old_tag = old >> 32;
		__u64 new = fresh;
		if ((__u32)old && !((old_tag ^ tag) >> ROUND_BITS)) {
			if (old_tag == tag) {
				if (old & bit)
					return REPEAT;
				new = old | bit;
			} else if (((tag - old_tag) & ((1 << ROUND_BITS) - 1)) >= HALF_ROUND) {
				return OUTSIDE;
			}
		}
		__u64 found = __sync_val_compare_and_swap(word, old, new);
		if (found == old)
			return FIRST;
		old = found;
	}
	return OUTSIDE;
}

static __always_inline struct ignored *ignored_counters(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&ignored, &zero);
}

EXTERN int take_sample(const struct sample *facts, bool first)
{
	if (!facts)
		return 0;
	struct sample *sample = bpf_ringbuf_reserve(&samples, sizeof(struct sample), 0);
	if (!sample) {
		struct ignored *counters = ignored_counters();
		if (counters)
			COUNT(counters->lost_samples);
		return 0;
	}
	*sample = *facts;
	sample->arrived_ns = bpf_ktime_get_ns();
	sample->first = first;
	bpf_ringbuf_submit(sample, 0);
	return 1;
}

/* decide judges a copy, counts it and takes the sample. */
static __always_inline enum action decide(const struct config *config, struct received *counters,
					  const struct sample *facts)
{
	if (facts->epoch == 0 || facts->epoch != config->epoch) {
		COUNT(counters->outside);
		return OPEN;
	}
	int verdict = judge(facts->flow, facts->epoch, facts->number);
	if (verdict == OUTSIDE) {
		COUNT(counters->outside);
		return OPEN;
	}
	if (config->divisor && !(facts->number & (config->divisor - 1)))
		take_sample(facts, verdict == FIRST);
	if (verdict == REPEAT) {
		COUNT(counters->repeated);
		return DROP;
	}
	COUNT(counters->first);
	return OPEN;
}

/* accepts reports whether an inner source address, in a prefix of all bits, is accepted. */
static __always_inline bool accepts(const struct prefix *source) { return bpf_map_lookup_elem(&inner, source) != NULL; }

/*
 * opened_ecn returns the ECN field of the inner packet after decapsulation (RFC 6040, figure 4), or -1 if the packet must
 * be dropped.
 */
static __always_inline int opened_ecn(__u8 outer, __u8 inner_tos)
{
	__u8 ecn = inner_tos & ECN;
	outer &= ECN;
	if (outer == CE)
		return ecn ? CE : -1;
	return ecn == ECT0 && outer == ECT1 ? ECT1 : ecn;
}

/*
 * number_segment computes the number of a segment of a TCP super-packet, see package wire. size is the number of bytes
 * from the TCP header on. It returns false if the segment has no payload.
 */
static __always_inline bool number_segment(const struct tcphdr *tcp, __u32 size, const struct header *header,
					      __u32 *number)
{
	__u32 headers = tcp->doff * 4;
	if (headers < sizeof(struct tcphdr) || size <= headers)
		return false;
	__u32 length = size - headers;
	__u16 behind = bpf_ntohs(header->end) - (__u16)bpf_ntohl(tcp->seq) - (__u16)length;
	*number = bpf_ntohl(header->base) - (behind + length - 1) / length;
	return true;
}

/*
 * read_inner reads the packet behind a data header, of size bytes, and its number. It returns false for packets that no
 * sender makes.
 */
static __always_inline bool read_inner(struct header *header, void *end, __u32 size, struct scratch *scratch)
{
	struct address *source = (struct address *)scratch->prefix.address;
	__u32 *number = &scratch->facts.number;
	scratch->prefix.bits = 128;
	void *data = header + 1;
	struct iphdr *ip = data;
	__u32 kind = header->kind & 15;
	if (data + sizeof(struct iphdr) > end)
		return false;
	*number = bpf_ntohl(header->base);
	if (ip->version == 4) {
		struct tcphdr *tcp = (void *)(ip + 1);
		FIXED(tcp);
		map_ipv4(source, ip->saddr);
		scratch->inner = 4;
		scratch->inner_tos = ip->tos;
		if (ip->ihl < 5 || bpf_ntohs(ip->tot_len) != size)
			return false;
		if (kind == KIND_ID)
			*number += (__u16)(bpf_ntohs(ip->id) - *number);
		if (kind != KIND_SEQUENCE)
			return true;
		return (void *)(tcp + 1) <= end && ip->ihl == 5 && ip->protocol == IPPROTO_TCP &&
		       number_segment(tcp, size - sizeof(struct iphdr), header, number);
	}
	struct ipv6hdr *ip6 = data;
	struct tcphdr *tcp = (void *)(ip6 + 1);
	FIXED(tcp);
	if (data + sizeof(struct ipv6hdr) > end)
		return false;
	copy_ipv6(source, &ip6->saddr);
	scratch->inner = 6;
	scratch->inner_tos = get_tos6(ip6);
	if (ip6->version != 6 || bpf_ntohs(ip6->payload_len) + sizeof(struct ipv6hdr) != size || kind == KIND_ID)
		return false;
	if (kind != KIND_SEQUENCE)
		return true;
	return (void *)(tcp + 1) <= end && ip6->nexthdr == IPPROTO_TCP &&
	       number_segment(tcp, size - sizeof(struct ipv6hdr), header, number);
}

/* open_inner judges the packet behind a data header, and writes its ECN field if it passes. */
static __always_inline enum action open_inner(const struct config *config, struct received *counters, struct header *header,
					      void *end, __u32 size, __u8 tos, struct scratch *scratch)
{
	if (!read_inner(header, end, size, scratch)) {
		COUNT(counters->malformed);
		return DROP;
	}
	if (!accepts(&scratch->prefix)) {
		COUNT(counters->refused);
		return DROP;
	}
	int ecn = opened_ecn(tos, scratch->inner_tos);
	if (ecn < 0) {
		COUNT(counters->congested);
		return DROP;
	}
	if (decide(config, counters, &scratch->facts) == DROP)
		return DROP;
	if (ecn == (scratch->inner_tos & ECN))
		return OPEN;
	void *data = header + 1;
	if (scratch->inner == 4) {
		set_tos(data, (scratch->inner_tos & ~ECN) | ecn);
	} else {
		__u8 *byte = data + 1; /* the ECN field is in its bits 4 and 5 */
		*byte = (*byte & ~(ECN << 4)) | ecn << 4;
	}
	return OPEN;
}

/* is_for reports whether a frame is for a hardware address. */
static __always_inline bool is_for(const __u8 *address, const void *frame)
{
	__u32 high = *(const __u32 *)address;
	__u16 low = *(const __u16 *)(address + 4);
	return (*(const __u32 *)frame == high && *(const __u16 *)(frame + 4) == low) || (!high && !low);
}

/* inspect judges a packet at a device, whose length is that of the frame. check_address is set at XDP. */
static __always_inline enum action inspect(void *data, void *end, const __u32 link, const bool check_address, bool is_ipv4,
					   __u32 length, const struct config *config, struct scratch *scratch)
{
	struct udphdr *udp;
	struct header *header;
	__u32 size; /* of the outer IP packet, as its header says */
	__u32 ip_header;
	__u8 tos;
	if (is_ipv4) {
		struct outer4 *outer = data + link;
		if ((void *)(outer + 1) > end)
			return LEAVE;
		if (*(__u8 *)outer != 0x45 || outer->ip.protocol != IPPROTO_UDP ||
		    outer->ip.frag_off & bpf_htons(FRAGMENT) || outer->udp.dest != bpf_htons(config->port))
			return LEAVE;
		map_ipv4((struct address *)scratch->source.remote, outer->ip.saddr);
		map_ipv4((struct address *)scratch->source.local, outer->ip.daddr);
		udp = &outer->udp;
		header = &outer->header;
		FIXED(udp);
		FIXED(header);
		ip_header = sizeof(struct iphdr);
		size = bpf_ntohs(outer->ip.tot_len);
		tos = outer->ip.tos;
		scratch->outer = 4;
	} else {
		struct outer6 *outer = data + link;
		if ((void *)(outer + 1) > end)
			return LEAVE;
		if (outer->ip.version != 6 || outer->ip.nexthdr != IPPROTO_UDP ||
		    outer->udp.dest != bpf_htons(config->port))
			return LEAVE;
		copy_ipv6((struct address *)scratch->source.remote, &outer->ip.saddr);
		copy_ipv6((struct address *)scratch->source.local, &outer->ip.daddr);
		udp = &outer->udp;
		header = &outer->header;
		FIXED(udp);
		FIXED(header);
		ip_header = sizeof(struct ipv6hdr);
		size = bpf_ntohs(outer->ip.payload_len) + sizeof(struct ipv6hdr);
		tos = get_tos6(&outer->ip);
		scratch->outer = 6;
	}
	__u8 *address = bpf_map_lookup_elem(&sources, &scratch->source);
	if (!address || (check_address && !is_for(address, data))) {
		struct ignored *counters = ignored_counters();
		if (counters)
			COUNT(counters->foreign);
		return LEAVE;
	}
	__u32 kind = header->kind & 15;
	if (kind == KIND_HELLO || kind == KIND_REPORT) {
		struct ignored *counters = ignored_counters();
		if (counters)
			COUNT(counters->control);
		return LEAVE;
	}
	scratch->path = header->path & (PATHS - 1);
	struct received *counters = bpf_map_lookup_elem(&received, &scratch->path);
	if (!counters)
		return LEAVE;
	COUNT(counters->packets);
	counters->bytes += size;
	if (header->kind >> 4 != HEADER_VERSION || kind > KIND_SEQUENCE || header->path >= PATHS ||
	    size + link > length || bpf_ntohs(udp->len) + ip_header != size) {
		COUNT(counters->malformed);
		return DROP;
	}
	struct sample *facts = &scratch->facts;
	facts->sent_us = bpf_ntohl(header->sent);
	facts->epoch = bpf_ntohs(header->epoch);
	facts->size = size;
	facts->flow = header->flow;
	facts->path = header->path;
	facts->set = header->set;
	__u32 overhead = ip_header + sizeof(struct udphdr) + sizeof(struct header);
	return open_inner(config, counters, header, end, size - overhead, tos, scratch);
}

/* strip removes the outer headers, of a constant size, from a frame. */
static __always_inline int strip(struct xdp_md *ctx, const __u32 size, __be16 protocol)
{
	struct ethhdr *ether = (void *)(long)ctx->data;
	if ((void *)(ether + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	const __u32 *from = (const __u32 *)ether;
	__u32 addresses[3] = {from[0], from[1], from[2]};
	if (bpf_xdp_adjust_head(ctx, size))
		return XDP_DROP;
	ether = (void *)(long)ctx->data;
	if ((void *)(ether + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	__u32 *to = (__u32 *)ether;
	to[0] = addresses[0];
	to[1] = addresses[1];
	to[2] = addresses[2];
	ether->h_proto = protocol;
	return XDP_PASS;
}

SEC("xdp.frags")
int receive_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *ether = data;
	if ((void *)(ether + 1) > end)
		return XDP_PASS;
	bool is_ipv4 = ether->h_proto == bpf_htons(ETH_P_IP);
	if (!is_ipv4 && ether->h_proto != bpf_htons(ETH_P_IPV6))
		return XDP_PASS;
	__u32 zero = 0;
	struct config *config = bpf_map_lookup_elem(&receive_config, &zero);
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &zero);
	if (!config || !scratch)
		return XDP_PASS;
	switch (inspect(data, end, ETHER, true, is_ipv4, bpf_xdp_get_buff_len(ctx), config, scratch)) {
	case LEAVE:
		return XDP_PASS;
	case DROP:
		return XDP_DROP;
	case OPEN:
		break;
	}
	__be16 protocol = scratch->inner == 4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	if (scratch->outer == 4)
		return strip(ctx, sizeof(struct outer4), protocol);
	return strip(ctx, sizeof(struct outer6), protocol);
}

static __always_inline int open_at_tc(struct __sk_buff *skb, const __u32 link, const struct scratch *scratch)
{
	__s32 size = scratch->outer == 4 ? sizeof(struct outer4) : sizeof(struct outer6);
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO;
	if (scratch->outer != scratch->inner)
		flags |= scratch->inner == 4 ? DECAP_L3_IPV4 : DECAP_L3_IPV6;
	if (bpf_skb_adjust_room(skb, -size, BPF_ADJ_ROOM_MAC, flags))
		return SHOT;
	if (link == ETHER && scratch->outer != scratch->inner) {
		struct ethhdr *ether = (void *)(long)skb->data;
		if ((void *)(ether + 1) > (void *)(long)skb->data_end)
			return SHOT;
		ether->h_proto = scratch->inner == 4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	}
	return NEXT;
}

static __always_inline int receive(struct __sk_buff *skb, const __u32 link)
{
	/* The longest headers: outer IPv6, inner IPv6 and TCP. */
	const __u32 wanted = link + sizeof(struct outer6) + sizeof(struct ipv6hdr) + sizeof(struct tcphdr);
	bool is_ipv4 = skb->protocol == bpf_htons(ETH_P_IP);
	if (!is_ipv4 && skb->protocol != bpf_htons(ETH_P_IPV6))
		return NEXT;
	if (skb->pkt_type == OTHERHOST)
		return NEXT;
	/* Copies come as they were on the wire: a packet that was merged on arrival is none. */
	if (skb->gso_size)
		return NEXT;
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	if (data + wanted > end) {
		if (bpf_skb_pull_data(skb, wanted < skb->len ? wanted : skb->len))
			return NEXT;
		data = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
	}
	__u32 zero = 0;
	struct config *config = bpf_map_lookup_elem(&receive_config, &zero);
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &zero);
	if (!config || !scratch)
		return NEXT;
	switch (inspect(data, end, link, false, is_ipv4, skb->len, config, scratch)) {
	case LEAVE:
		return NEXT;
	case DROP:
		return SHOT;
	case OPEN:
		break;
	}
	return open_at_tc(skb, link, scratch);
}

SEC("tc")
int receive_ether(struct __sk_buff *skb) { return receive(skb, ETHER); }

SEC("tc")
int receive_bare(struct __sk_buff *skb) { return receive(skb, BARE); }

/* find_ipv4 returns the IPv4 header of a frame that is no fragment and comes from an accepted prefix. */
static __always_inline struct iphdr *find_ipv4(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *ether = data;
	struct iphdr *ip = (void *)(ether + 1);
	if ((void *)(ip + 1) > end || ether->h_proto != bpf_htons(ETH_P_IP) || ip->version != 4)
		return NULL;
	struct prefix source = {.bits = 128};
	map_ipv4((struct address *)source.address, ip->saddr);
	if (ip->frag_off & bpf_htons(FRAGMENT) || !accepts(&source))
		return NULL;
	return ip;
}

/* stamped_xdp filters packets that have their number in the IP identification, and clears their DSCP. */
SEC("xdp.frags")
int stamped_xdp(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	__u32 zero = 0;
	struct config *config = bpf_map_lookup_elem(&receive_config, &zero);
	struct iphdr *ip = find_ipv4(ctx);
	if (!config || !ip || !(ip->tos >> 5))
		return XDP_PASS;
	__u32 path = ip->tos >> 2 & (PATHS - 1);
	struct received *counters = bpf_map_lookup_elem(&received, &path);
	if (!counters)
		return XDP_PASS;
	struct address source, destination;
	map_ipv4(&source, ip->saddr);
	map_ipv4(&destination, ip->daddr);
	__u32 *ports = (void *)(ip + 1);
	bool has_ports = ip->ihl == 5 && ((ip->protocol == IPPROTO_UDP && (void *)ports + sizeof(struct udphdr) <= end) ||
					  (ip->protocol == IPPROTO_TCP && (void *)ports + sizeof(struct tcphdr) <= end));
	__u32 flow = hash_flow(&source, &destination, ip->protocol, has_ports ? *ports : 0) & (FLOWS - 1);
	__u32 *newest = bpf_map_lookup_elem(&stamps, &flow);
	if (!newest)
		return XDP_PASS;
	__u32 last = *newest;
	__u32 number = last + (__s16)(bpf_ntohs(ip->id) - (__u16)last);
	struct sample facts = {
		.number = number,
		.epoch = ip->tos >> 5 == stamp_of_epoch(config->epoch) ? config->epoch : 0,
		.size = bpf_ntohs(ip->tot_len),
		.flow = flow,
		.path = path,
	};
	COUNT(counters->packets);
	counters->bytes += facts.size;
	if (decide(config, counters, &facts) == DROP)
		return XDP_DROP;
	set_tos(ip, ip->tos & ECN);
	if (facts.epoch && (__s32)(number - last) > 0)
		*newest = number;
	return XDP_PASS;
}

/*
 * paper_xdp is the published filter: a packet is dropped if a packet with the same IP identification has passed less than
 * a second before. It drops packets that are no copies, and is for comparisons only. Samples have the identification as
 * number.
 */
SEC("xdp.frags")
int paper_xdp(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct config *config = bpf_map_lookup_elem(&receive_config, &zero);
	struct iphdr *ip = find_ipv4(ctx);
	if (!config || !ip)
		return XDP_PASS;
	__u32 path = ip->tos ? (ip->tos - 1) & (PATHS - 1) : 0;
	__u32 id = bpf_ntohs(ip->id);
	struct received *counters = bpf_map_lookup_elem(&received, &path);
	__u64 *passed = bpf_map_lookup_elem(&paper, &id);
	if (!counters || !passed)
		return XDP_PASS;
	struct sample facts = {
		.number = id,
		.size = bpf_ntohs(ip->tot_len),
		.path = path,
	};
	COUNT(counters->packets);
	counters->bytes += facts.size;
	__u64 now = bpf_ktime_get_ns();
	bool repeated = *passed && now - *passed < SECOND;
	if (config->divisor)
		take_sample(&facts, !repeated);
	if (repeated) {
		COUNT(counters->repeated);
		return XDP_DROP;
	}
	*passed = now;
	COUNT(counters->first);
	return XDP_PASS;
}

char _license[] SEC("license") = "Apache-2.0";

//go:build ignore

/*
 * The sender of a pair: copies packets that rules select onto several paths, at the egress of devices.
 *
 * A program makes n-1 clones and sends the original as the last copy. It must not drop the original after cloning: TCP
 * takes that for congestion of the own host and stalls. Copies carry a mark, so that they pass when they reach the
 * program again on the device of their path.
 *
 * The programs load with CAP_BPF and CAP_NET_ADMIN, without CAP_PERFMON. So there is no bpf_spin_lock, and the offsets in
 * packets are constants.
 */
#include "common.h"

#define FORMAT_PLAIN 0
#define FORMAT_ENCAPSULATED 1
#define FORMAT_STAMPED 2
#define FORMAT_PAPER 3

#define ANY_DSCP 255

/* The device took the packet, and asks for fewer. */
#define XMIT_CONGESTED 2

/* The outer source port is FIRST_PORT plus the flow, so that routers with several links keep a flow on one link. */
#define FIRST_PORT 49152

struct config {
	__u64 lease_ns;  /* packets leave plain from this time of bpf_ktime_get_ns() on */
	__u32 mark;      /* of copies; mark + 1 is also used */
	__u32 segmenter; /* device that cuts super-packets into segments, or 0 */
	__u16 epoch;     /* not 0 */
	__u16 port;      /* of the receiver */
	/*
	 * 1: the segmenter cuts all super-packets of UDP, because a device does not compute checksums. Such a device gets
	 * them without CHECKSUM_PARTIAL. Linux then does not correct the place of the checksum when it makes room for the
	 * outer headers, and drops them as invalid.
	 */
	__u8 cut;
	__u8 pad[3];
};

struct rule {
	__u32 mark; /* of the packet, in the bits of mark_mask */
	__u32 mark_mask;
	__u32 divisor;    /* of probes: a power of two, or 0 for none */
	__u16 port_first; /* source or destination port; 0 to 65535 also selects packets without ports */
	__u16 port_last;
	__u8 protocol; /* 0: any */
	__u8 dscp;     /* 255: any */
	__u8 format;
	__u8 primary; /* path of packets that exceed the MTU of another path */
	__u8 set;
	__u8 probes;
	__u8 pad[2];
};

struct path {
	ADDRESS(local);
	ADDRESS(remote);
	__u32 ifindex; /* 0: the path cannot be used */
	__u16 mtu;     /* of outer packets */
	__u8 version;  /* of the outer IP header: 4 or 6 */
	__u8 ether;    /* 1: the device has an Ethernet header */
	__u8 destination[ETH_ALEN] __attribute__((aligned(4)));
	__u8 source[ETH_ALEN];
};

struct sent {
	__u64 packets; /* segments */
	__u64 bytes;   /* of outer IP packets */
	__u64 failed;  /* clones that the device did not take */
	__u64 oversize;
};

struct selected {
	__u64 packets; /* segments that left as copies */
	__u64 bytes;   /* of their IP packets, without encapsulation */
	__u64 plain;   /* left unchanged: the lease is over, or no path can be used */
	__u64 refused; /* left unchanged: no number can be given */
	__u64 segmented;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct config);
} send_config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RULES);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct rule);
} rules SEC(".maps");

/* Destination prefixes. The value has bit i if rule i takes the prefix. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, PREFIXES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, struct prefix);
	__type(value, __u32);
} prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PATHS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct path);
} paths SEC(".maps");

/* The next number of each flow. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, __u32);
} numbers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PATHS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct sent);
} sent SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct selected);
} selected SEC(".maps");

/* The facts of an IP packet that a program needs. */
struct packet {
	struct address source;
	struct address destination;
	__u32 ports;    /* source and destination port as they stand in the header, or 0 */
	__u32 sequence; /* of TCP */
	__u32 headers;  /* bytes of the IP and transport headers, 0 if unknown */
	__u32 length;   /* bytes of the IP packet */
	__u8 version;
	__u8 protocol;
	__u8 tos;
	__u8 options; /* 1: the IP header has options */
};

/* The decisions on a packet that all its copies share. */
struct job {
	__u32 mark;
	__u32 base;
	__u32 sent_us;
	__u32 segments;
	__u32 segment; /* bytes of the largest IP packet after segmentation */
	__u16 end;
	__u16 epoch;
	__u16 port;
	__u8 kind;
	__u8 flow;
	__u8 set;  /* for the data header */
	__u8 mask; /* paths on which copies are to leave */
	__u8 tos;
	__u8 format;
	__u8 headers; /* bytes of the IP and transport headers of each segment */
};

/*
 * The variables of one run. On the stack, each would cost a barrier against speculation for users without CAP_PERFMON.
 * Runs on one processor do not interrupt each other, except that a copy runs the program again. Such a run ends at the
 * mark, but for the split-off copies, which have the second entry. busy is 1 while copies are sent: another packet that
 * leaves meanwhile, because the device of a path made it, is left unchanged.
 */
struct scratch {
	struct packet packet;
	struct job job;
	__u32 busy;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct scratch);
} send_scratches SEC(".maps");

/* parse_ports reads the ports and the size of the transport header, which begins at a constant offset. */
static __always_inline void parse_ports(struct packet *p, void *transport, void *end, __u32 ip)
{
	if (p->protocol == IPPROTO_UDP && transport + sizeof(struct udphdr) <= end) {
		p->ports = *(__u32 *)transport;
		p->headers = ip + sizeof(struct udphdr);
	} else if (p->protocol == IPPROTO_TCP && transport + sizeof(struct tcphdr) <= end) {
		struct tcphdr *tcp = transport;
		p->ports = *(__u32 *)transport;
		p->sequence = bpf_ntohl(tcp->seq);
		p->headers = ip + tcp->doff * 4;
	}
}

/*
 * parse reads the packet's headers. It returns false for packets that are never copied: fragments, multicast and
 * broadcast, and protocols other than IP.
 */
static __always_inline bool parse(struct __sk_buff *skb, const __u32 link, struct packet *p)
{
	const __u32 wanted = link + sizeof(struct ipv6hdr) + sizeof(struct tcphdr);
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	if (data + wanted > end) {
		/* The headers may lie outside the linear part. */
		if (bpf_skb_pull_data(skb, wanted < skb->len ? wanted : skb->len))
			return false;
		data = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
	}
	if (data + link + sizeof(struct iphdr) > end)
		return false;
	if (link == ETHER && *(__u8 *)data & 1)
		return false;
	p->ports = 0;
	p->sequence = 0;
	p->headers = 0;
	p->options = 0;
	p->length = skb->len - link;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = data + link;
		if (ip->version != 4 || ip->frag_off & bpf_htons(FRAGMENT) || bpf_ntohl(ip->daddr) >= 0xe0000000)
			return false;
		p->version = 4;
		p->protocol = ip->protocol;
		p->tos = ip->tos;
		map_ipv4(&p->source, ip->saddr);
		map_ipv4(&p->destination, ip->daddr);
		if (ip->ihl == 5)
			parse_ports(p, ip + 1, end, sizeof(struct iphdr));
		else
			p->options = 1;
		return true;
	}
	struct ipv6hdr *ip = data + link;
	if (data + link + sizeof(struct ipv6hdr) > end || ip->version != 6)
		return false;
	if (ip->nexthdr == IPPROTO_FRAGMENT || ip->daddr.in6_u.u6_addr8[0] == 0xff)
		return false;
	p->version = 6;
	p->protocol = ip->nexthdr;
	p->tos = get_tos6(ip);
	copy_ipv6(&p->source, &ip->saddr);
	copy_ipv6(&p->destination, &ip->daddr);
	parse_ports(p, ip + 1, end, sizeof(struct ipv6hdr));
	return true;
}

/* is_outer reports whether the packet already goes to the other edge's port: a control message or another copy. */
EXTERN int is_outer(const struct packet *p, __u16 port)
{
	if (!p || p->protocol != IPPROTO_UDP || p->ports >> 16 != bpf_htons(port))
		return false;
	EACH(i, PATHS) {
		__u32 key = i;
		struct path *path = bpf_map_lookup_elem(&paths, &key);
		if (!path)
			continue;
		const struct address *remote = (const struct address *)path->remote;
		if (remote->words[3] == p->destination.words[3] && remote->words[2] == p->destination.words[2] &&
		    remote->words[1] == p->destination.words[1] && remote->words[0] == p->destination.words[0])
			return true;
	}
	return false;
}

static __always_inline bool rule_selects(const struct rule *rule, const struct packet *p, __u32 mark)
{
	if ((mark & rule->mark_mask) != rule->mark)
		return false;
	if (rule->protocol && rule->protocol != p->protocol)
		return false;
	if (rule->dscp != ANY_DSCP && rule->dscp != p->tos >> 2)
		return false;
	if (rule->port_first == 0 && rule->port_last == 65535)
		return true;
	__u32 source = bpf_ntohs((__u16)p->ports), destination = bpf_ntohs(p->ports >> 16);
	return p->ports && ((source >= rule->port_first && source <= rule->port_last) ||
			    (destination >= rule->port_first && destination <= rule->port_last));
}

/* find_rule returns the index of the first rule that selects the packet, or RULES. */
EXTERN __u32 find_rule(const struct packet *p, __u32 mark)
{
	if (!p)
		return RULES;
	struct prefix prefix = {.bits = 128};
	__builtin_memcpy(prefix.address, &p->destination, 16);
	__u32 *found = bpf_map_lookup_elem(&prefixes, &prefix);
	if (!found)
		return RULES;
	__u32 candidates = *found;
	EACH(i, RULES) {
		if (!(candidates >> i & 1))
			continue;
		__u32 key = i;
		struct rule *rule = bpf_map_lookup_elem(&rules, &key);
		if (rule && rule_selects(rule, p, mark))
			return i;
	}
	return RULES;
}

/* overhead is the number of bytes that a copy on a path is larger than the packet. */
static __always_inline __u32 overhead(const struct path *path, __u8 format)
{
	if (format != FORMAT_ENCAPSULATED)
		return 0;
	return path->version == 6 ? sizeof(struct outer6) : sizeof(struct outer4);
}

/* The result of usable: paths of a mask that can be used, and of these the paths whose MTU is too small. */
#define ABLE(usable) ((usable) & 255)
#define NARROW(usable) ((usable) >> 8)

/* usable examines the paths of a mask for a packet with segments of at most the given size. */
EXTERN __u32 usable(__u32 mask, __u32 size, __u32 segments, __u8 format)
{
	__u32 result = 0;
	EACH(i, PATHS) {
		if (!(mask >> i & 1))
			continue;
		__u32 key = i;
		struct path *path = bpf_map_lookup_elem(&paths, &key);
		if (!path || !path->ifindex)
			continue;
		result |= 1 << i;
		if (size + overhead(path, format) <= path->mtu)
			continue;
		result |= 1 << (i + 8);
		struct sent *counters = bpf_map_lookup_elem(&sent, &key);
		if (counters)
			counters->oversize += segments;
	}
	return result;
}

/*
 * has_probe reports whether a packet is a probe: its numbers contain a multiple of the divisor times the number of
 * segments, rounded up to a power of two. So at most 1/divisor of all segments are probes, and one of them is sampled.
 */
static __always_inline bool has_probe(__u32 base, __u32 segments, __u32 divisor)
{
	/* One less than the segments, rounded up to a power of two. */
	__u32 ones = segments - 1;
	ones |= ones >> 1;
	ones |= ones >> 2;
	ones |= ones >> 4;
	ones |= ones >> 8;
	__u32 rest = divisor * (ones + 1) - 1;
	return ((base + rest) & ~rest) - base < segments;
}

/* WRITABLE declares a pointer to the first bytes of the packet, and returns false if the packet has fewer. */
#define WRITABLE(skb, data, size)                          \
	void *data = (void *)(long)(skb)->data;            \
	if (data + (size) > (void *)(long)(skb)->data_end) \
		return false

static __always_inline void write_ether(struct ethhdr *ether, const struct path *path, __be16 protocol)
{
	const __u32 *from = (const __u32 *)path->destination; /* and path->source */
	__u32 *to = (__u32 *)ether;
	to[0] = from[0];
	to[1] = from[1];
	to[2] = from[2];
	ether->h_proto = protocol;
}

/* write_udp writes the outer UDP header and the data header. length is that of both and the inner packet. */
static __always_inline void write_udp(struct udphdr *udp, struct header *header, const struct job *job, __u32 path,
				      __u32 length)
{
	udp->source = bpf_htons(FIRST_PORT + job->flow);
	udp->dest = bpf_htons(job->port);
	/* Segmentation writes the lengths of super-packets, which may exceed 16 bits. */
	udp->len = bpf_htons(length);
	udp->check = 0; /* RFC 6935 and RFC 6936: the inner packet has a checksum of its own */
	header->kind = HEADER_VERSION << 4 | job->kind;
	header->path = path;
	header->set = job->set;
	header->flow = job->flow;
	header->end = bpf_htons(job->end);
	header->epoch = bpf_htons(job->epoch);
	header->base = bpf_htonl(job->base);
	header->sent = bpf_htonl(job->sent_us);
}

static __always_inline bool write_outer4(struct __sk_buff *skb, const __u32 link, const struct path *path, __u32 index,
					 const struct job *job)
{
	WRITABLE(skb, data, link + sizeof(struct outer4));
	if (link == ETHER)
		write_ether(data, path, bpf_htons(ETH_P_IP));
	struct outer4 *outer = data + link;
	__u32 length = skb->len - link;
	outer->ip.version = 4;
	outer->ip.ihl = 5;
	outer->ip.tos = job->tos;
	outer->ip.tot_len = bpf_htons(length);
	outer->ip.id = 0; /* an atomic packet needs none (RFC 6864) */
	outer->ip.frag_off = bpf_htons(DONT_FRAGMENT);
	outer->ip.ttl = 64;
	outer->ip.protocol = IPPROTO_UDP;
	__be32 local = ((const struct address *)path->local)->words[3];
	__be32 remote = ((const struct address *)path->remote)->words[3];
	__u32 sum = bpf_htons(0x4500 | job->tos) + outer->ip.tot_len + bpf_htons(DONT_FRAGMENT) +
		    bpf_htons(64 << 8 | IPPROTO_UDP) + (local & 0xffff) + (local >> 16) + (remote & 0xffff) +
		    (remote >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	outer->ip.check = ~((sum & 0xffff) + (sum >> 16));
	outer->ip.saddr = local;
	outer->ip.daddr = remote;
	write_udp(&outer->udp, &outer->header, job, index, length - sizeof(struct iphdr));
	return true;
}

static __always_inline bool write_outer6(struct __sk_buff *skb, const __u32 link, const struct path *path, __u32 index,
					 const struct job *job)
{
	WRITABLE(skb, data, link + sizeof(struct outer6));
	if (link == ETHER)
		write_ether(data, path, bpf_htons(ETH_P_IPV6));
	struct outer6 *outer = data + link;
	__u32 payload = skb->len - link - sizeof(struct ipv6hdr);
	/* Version, traffic class, and the flow as flow label (RFC 6437). */
	*(__be32 *)&outer->ip = bpf_htonl(6 << 28 | (__u32)job->tos << 20 | (FIRST_PORT + job->flow));
	outer->ip.payload_len = bpf_htons(payload);
	outer->ip.nexthdr = IPPROTO_UDP;
	outer->ip.hop_limit = 64;
	__builtin_memcpy(&outer->ip.saddr, path->local, 16);
	__builtin_memcpy(&outer->ip.daddr, path->remote, 16);
	write_udp(&outer->udp, &outer->header, job, index, payload);
	return true;
}

/* write_stamp writes a packet's number into the IP identification, and the path into the DSCP. */
static __always_inline bool write_stamp(struct __sk_buff *skb, const __u32 link, const struct path *path, __u32 index,
					const struct job *job)
{
	WRITABLE(skb, data, link + sizeof(struct iphdr));
	if (link == ETHER)
		write_ether(data, path, bpf_htons(ETH_P_IP));
	struct iphdr *ip = data + link;
	if (job->format == FORMAT_PAPER) {
		set_tos(ip, index + 1); /* overwrites the ECN, as published */
		return true;
	}
	__be16 id = bpf_htons(job->base);
	ip->check = replace16(ip->check, ip->id, id);
	ip->id = id;
	set_tos(ip, stamp_of_epoch(job->epoch) << 5 | index << 2 | (job->tos & ECN));
	return true;
}

static __always_inline bool write_copy(struct __sk_buff *skb, const __u32 link, const struct path *path, __u32 index,
				       const struct job *job)
{
	if (job->format != FORMAT_ENCAPSULATED)
		return write_stamp(skb, link, path, index, job);
	if (path->version == 6)
		return write_outer6(skb, link, path, index, job);
	return write_outer4(skb, link, path, index, job);
}

/* write_ether_copy and write_bare_copy write the headers of a copy, on a device with and without a link header. */
static __noinline bool write_ether_copy(struct __sk_buff *skb, const struct path *path, __u32 index, const struct job *job)
{
	return write_copy(skb, ETHER, path, index, job);
}

static __noinline bool write_bare_copy(struct __sk_buff *skb, const struct path *path, __u32 index, const struct job *job)
{
	return write_copy(skb, BARE, path, index, job);
}

static __always_inline bool encapsulate(struct __sk_buff *skb, __u8 version)
{
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_ENCAP_L4_UDP;
	if (version == 6)
		return !bpf_skb_adjust_room(skb, sizeof(struct outer6), BPF_ADJ_ROOM_MAC,
					    flags | BPF_F_ADJ_ROOM_ENCAP_L3_IPV6);
	return !bpf_skb_adjust_room(skb, sizeof(struct outer4), BPF_ADJ_ROOM_MAC, flags | BPF_F_ADJ_ROOM_ENCAP_L3_IPV4);
}

/*
 * split sends a clone, with the decisions in its control block, to the program on the device of the first of the given
 * paths, whose outer IP version differs.
 */
static __always_inline void split(struct __sk_buff *skb, const struct job *job, __u8 others, __u32 ifindex)
{
	skb->cb[0] = job->base;
	skb->cb[1] = job->sent_us;
	skb->cb[2] = (__u32)job->end << 16 | job->epoch;
	skb->cb[3] = (__u32)job->kind << 24 | (__u32)job->flow << 16 | (__u32)job->set << 8 | others;
	skb->cb[4] = (__u32)job->headers << 24 | (__u32)job->tos << 16 | job->segments;
	skb->mark = job->mark + 1;
	bpf_clone_redirect(skb, ifindex, 0);
}

static __always_inline void join(struct __sk_buff *skb, struct job *job)
{
	job->base = skb->cb[0];
	job->sent_us = skb->cb[1];
	job->end = skb->cb[2] >> 16;
	job->epoch = skb->cb[2];
	job->kind = skb->cb[3] >> 24;
	job->flow = skb->cb[3] >> 16;
	job->set = skb->cb[3] >> 8;
	job->mask = skb->cb[3];
	job->headers = skb->cb[4] >> 24;
	job->tos = skb->cb[4] >> 16;
	job->segments = skb->cb[4] & 0xffff;
	job->format = FORMAT_ENCAPSULATED;
}

static __noinline void count_copy(__u32 index, const struct job *job, __u32 bytes, int result)
{
	struct sent *counters = bpf_map_lookup_elem(&sent, &index);
	if (!counters)
		return;
	bool taken = result == 0 || result == XMIT_CONGESTED;
	counters->packets += taken ? job->segments : 0;
	counters->bytes += taken ? bytes : 0;
	counters->failed += taken ? 0 : job->segments;
}

/* segments_size is the number of bytes of the IP packets into which a packet is segmented. */
static __always_inline __u32 segments_size(const struct job *job, __u32 length)
{
	return length + (job->segments - 1) * job->headers;
}

/*
 * deliver sends the copies on the paths of job->mask. at_home is true if the packet may leave by the present device
 * without a redirect.
 */
static __always_inline int deliver(struct __sk_buff *skb, const __u32 link, const struct job *job, bool at_home)
{
	bool (*const write)(struct __sk_buff *, const struct path *, __u32, const struct job *) =
		link == ETHER ? write_ether_copy : write_bare_copy;
	__u32 inner = segments_size(job, skb->len - link);
	__u32 version = 0, others = 0, elsewhere = 0;
	EACH(i, PATHS) {
		if (!(job->mask >> i & 1))
			continue;
		__u32 key = i;
		struct path *path = bpf_map_lookup_elem(&paths, &key);
		if (!path)
			continue;
		if (!version)
			version = path->version;
		if (job->format == FORMAT_ENCAPSULATED && path->version != version) {
			if (!others)
				elsewhere = path->ifindex;
			others |= 1 << i;
		}
	}
	if (others)
		split(skb, job, others, elsewhere);
	if (job->format == FORMAT_ENCAPSULATED && !encapsulate(skb, version)) {
		__u32 zero = 0;
		struct selected *counters = bpf_map_lookup_elem(&selected, &zero);
		if (counters)
			COUNT(counters->refused);
		return NEXT;
	}
	skb->mark = job->mark;
	/* The original leaves on the last path, the one of the least index: mostly the primary path. */
	__u32 left = job->mask & ~others;
	struct path *last = NULL;
	__u32 last_index = 0;
	EACH(i, PATHS) {
		__u32 key = i;
		if (!(left >> i & 1))
			continue;
		struct path *path = bpf_map_lookup_elem(&paths, &key);
		if (!path)
			continue;
		if (!last) {
			last = path;
			last_index = i;
			continue;
		}
		if (!write(skb, path, i, job))
			continue;
		__u32 bytes = inner + job->segments * overhead(path, job->format);
		count_copy(i, job, bytes, bpf_clone_redirect(skb, path->ifindex, 0));
	}
	if (!last || !write(skb, last, last_index, job))
		return SHOT; /* impossible: the packet has room for the headers */
	count_copy(last_index, job, inner + job->segments * overhead(last, job->format), 0);
	if (at_home && last->ifindex == skb->ifindex)
		return NEXT;
	return bpf_redirect(last->ifindex, 0);
}

EXTERN int deliver_ether(struct __sk_buff *skb, const struct job *job, bool at_home)
{
	return job ? deliver(skb, ETHER, job, at_home) : SHOT;
}

EXTERN int deliver_bare(struct __sk_buff *skb, const struct job *job)
{
	return job ? deliver(skb, BARE, job, true) : SHOT;
}

/* add_ether gives a packet without an Ethernet header one if the device of a path needs it. False: it failed. */
static __always_inline bool add_ether(struct __sk_buff *skb, const struct job *job, bool *added)
{
	__u32 ether = 0;
	EACH(i, PATHS) {
		__u32 key = i;
		struct path *path = bpf_map_lookup_elem(&paths, &key);
		if (path && job->mask >> i & 1)
			ether |= path->ether;
	}
	*added = ether;
	return !ether || !bpf_skb_change_head(skb, ETHER, 0);
}

static __always_inline int dispatch(struct __sk_buff *skb, const __u32 link, struct scratch *scratch, const bool egress)
{
	bool added = false;
	if (link == BARE && !add_ether(skb, &scratch->job, &added))
		return SHOT;
	scratch->busy = 1;
	int verdict = link == ETHER || added ? deliver_ether(skb, &scratch->job, egress && !added)
					     : deliver_bare(skb, &scratch->job);
	scratch->busy = 0;
	return verdict;
}

/* set_id writes the IP identification from which segmentation counts. */
static __always_inline bool set_id(struct __sk_buff *skb, const __u32 link, __u32 base)
{
	WRITABLE(skb, data, link + sizeof(struct iphdr));
	struct iphdr *ip = data + link;
	__be16 id = bpf_htons(base);
	ip->check = replace16(ip->check, ip->id, id);
	ip->id = id;
	return true;
}

static __always_inline bool set_protocol(struct __sk_buff *skb)
{
	WRITABLE(skb, data, sizeof(struct ethhdr));
	((struct ethhdr *)data)->h_proto = skb->protocol;
	return true;
}

/* to_segmenter redirects a super-packet to a device that cuts it into segments, which then reach send_segment. */
static __always_inline int to_segmenter(struct __sk_buff *skb, const __u32 link, const struct config *config,
					struct selected *counters, const bool egress)
{
	if (!config->segmenter || !egress) {
		COUNT(counters->refused);
		return NEXT;
	}
	if (link == BARE && (bpf_skb_change_head(skb, ETHER, 0) || !set_protocol(skb)))
		return SHOT;
	COUNT(counters->segmented);
	return bpf_redirect(config->segmenter, 0);
}

/*
 * number_by returns the kind by which the segments of a super-packet can be numbered, or -1 if they must be cut before.
 * The IP identifications of forwarded TCP may be the same in all segments; TCP of this host counts.
 */
static __always_inline int number_by(const struct __sk_buff *skb, const struct packet *p, __u8 format, bool cut)
{
	if (p->protocol == IPPROTO_UDP && p->version == 4)
		return cut ? -1 : KIND_ID;
	if (p->protocol != IPPROTO_TCP || !p->headers || p->length > 65535)
		return -1;
	if (format == FORMAT_ENCAPSULATED)
		return KIND_SEQUENCE;
	return skb->ingress_ifindex ? -1 : KIND_ID;
}

static __always_inline int send(struct __sk_buff *skb, const __u32 link, const bool egress)
{
	__u32 zero = 0;
	struct config *config = bpf_map_lookup_elem(&send_config, &zero);
	struct selected *counters = bpf_map_lookup_elem(&selected, &zero);
	if (!config || !counters || skb->mark == config->mark)
		return NEXT;
	if ((skb->protocol != bpf_htons(ETH_P_IP) && skb->protocol != bpf_htons(ETH_P_IPV6)) || skb->vlan_present)
		return NEXT;
	__u32 entry = skb->mark == config->mark + 1;
	struct scratch *scratch = bpf_map_lookup_elem(&send_scratches, &entry);
	if (!scratch || scratch->busy)
		return NEXT;
	struct job *job = &scratch->job;
	job->mark = config->mark;
	job->port = config->port;
	if (entry) {
		join(skb, job);
		return dispatch(skb, link, scratch, egress);
	}
	struct packet *p = &scratch->packet;
	if (!parse(skb, link, p))
		return NEXT;
	__u32 index = find_rule(p, skb->mark);
	struct rule *rule = bpf_map_lookup_elem(&rules, &index);
	if (!rule || rule->format == FORMAT_PLAIN || is_outer(p, config->port))
		return NEXT;
	__u64 now = bpf_ktime_get_ns();
	if (now >= config->lease_ns) {
		COUNT(counters->plain);
		return NEXT;
	}
	job->format = rule->format;
	if (job->format != FORMAT_ENCAPSULATED && p->version != 4) {
		COUNT(counters->refused);
		return NEXT;
	}
	job->kind = KIND_SINGLE;
	job->segments = 1;
	job->headers = 0;
	job->segment = p->length;
	__u32 size = skb->gso_size, payload = p->length - p->headers;
	if (size && payload > size) {
		int kind = number_by(skb, p, job->format, config->cut);
		if (kind < 0 || p->options)
			return to_segmenter(skb, link, config, counters, egress);
		job->kind = kind;
		job->segments = (payload + size - 1) / size;
		job->segment = p->headers + size;
		job->end = p->sequence + payload;
		job->headers = p->headers;
	}
	__u32 found = usable(rule->set, job->segment, job->segments, job->format);
	if (NARROW(found))
		found = usable(1 << (rule->primary & (PATHS - 1)), job->segment, job->segments, job->format);
	__u32 set = ABLE(found) & ~NARROW(found);
	if (!set) {
		COUNT(counters->plain);
		return NEXT;
	}
	__u32 hash = hash_flow(&p->source, &p->destination, p->protocol, p->ports);
	__u32 flow = job->format == FORMAT_ENCAPSULATED ? index << 4 | (hash & 15) : hash & 255;
	__u32 *next = bpf_map_lookup_elem(&numbers, &flow);
	if (!next)
		return NEXT;
	job->base = __sync_fetch_and_add(next, job->segments);
	if (rule->divisor && has_probe(job->base, job->segments, rule->divisor)) {
		found = usable(rule->probes & ~set, job->segment, job->segments, job->format);
		set |= ABLE(found) & ~NARROW(found);
	}
	job->set = set;
	job->mask = set;
	job->flow = flow;
	job->epoch = config->epoch;
	job->sent_us = now / 1000;
	job->tos = p->tos;
	/* The published marking keeps the identifications of the network stack. */
	if (job->kind == KIND_ID && job->format != FORMAT_PAPER && !set_id(skb, link, job->base))
		return NEXT;
	if (job->kind == KIND_SEQUENCE)
		job->base += job->segments - 1;
	else
		job->end = 0;
	counters->packets += job->segments;
	counters->bytes += segments_size(job, p->length);
	return dispatch(skb, link, scratch, egress);
}

SEC("tc")
int send_ether(struct __sk_buff *skb) { return send(skb, ETHER, true); }

SEC("tc")
int send_bare(struct __sk_buff *skb) { return send(skb, BARE, true); }

/* At the ingress of the segmenter's other end. */
SEC("tc")
int send_segment(struct __sk_buff *skb) { return send(skb, ETHER, false); }

char _license[] SEC("license") = "Apache-2.0";

package cluster

import (
	"cmp"
	"time"
)

// Config has the times and limits of a Replica. Zero values are replaced by defaults.
type Config struct {
	// Beat is the interval of beats, 200 ms.
	Beat time.Duration
	// Suspect is the time without a beat after which a node is suspected, 650 ms: three beats and 50 ms.
	Suspect time.Duration
	// TrunkSilence is the time without a packet after which a trunk confirms a suspicion, 500 ms: five pings.
	TrunkSilence time.Duration
	// Silence is the time without a beat after which a node without a trunk is dead even if no other suspects it, 10 s.
	Silence time.Duration
	// ResumeGrace is the time for which the participants of a dead node keep their places, 10 s.
	ResumeGrace time.Duration
	// Tombstone is the time for which a tombstone holds, and for which a dead node is remembered, 60 s.
	Tombstone time.Duration
	// Retry is the time after which a request without a reply is repeated, 150 ms.
	Retry time.Duration

	// MaxNodes is the maximum number of other nodes, 1024.
	MaxNodes int
	// MirrorBytes is the maximum weight of the mirrors of one node, 64 MiB: 800 participants with the longest
	// publication each, or 40,000 with a body of 15 tiles.
	MirrorBytes int
	// MessageRate and MessageBurst limit the messages of one node besides beats and records of sessions, 5,000 per
	// second and 20,000: after a partition each of MaxRooms rooms takes a request and a snapshot.
	MessageRate, MessageBurst int
	// ByteRate and ByteBurst limit the bytes of these messages, and those of snapshots for the node, 32 and 128 MiB.
	ByteRate, ByteBurst int
	// BeatRate and BeatBurst limit the beats of one node, 20 per second and 1,000. Other messages of the node, however
	// many, do not make its beats late.
	BeatRate, BeatBurst int
	// SessionRate and SessionBurst limit the records of sessions of one node, 1,000 per second and 16,384: the ends of
	// all sessions of a node at once. SessionByteRate and SessionByteBurst limit their bytes, 8 and 32 MiB.
	SessionRate, SessionBurst         int
	SessionByteRate, SessionByteBurst int
}

func (c Config) withDefaults() Config {
	return Config{
		Beat:         cmp.Or(c.Beat, 200*time.Millisecond),
		Suspect:      cmp.Or(c.Suspect, 650*time.Millisecond),
		TrunkSilence: cmp.Or(c.TrunkSilence, 500*time.Millisecond),
		Silence:      cmp.Or(c.Silence, 10*time.Second),
		ResumeGrace:  cmp.Or(c.ResumeGrace, 10*time.Second),
		Tombstone:    cmp.Or(c.Tombstone, time.Minute),
		Retry:        cmp.Or(c.Retry, 150*time.Millisecond),
		MaxNodes:     cmp.Or(c.MaxNodes, 1024),
		MirrorBytes:  cmp.Or(c.MirrorBytes, 64<<20),
		MessageRate:  cmp.Or(c.MessageRate, 5000),
		MessageBurst: cmp.Or(c.MessageBurst, 20_000),
		ByteRate:     cmp.Or(c.ByteRate, 32<<20),
		ByteBurst:    cmp.Or(c.ByteBurst, 128<<20),
		BeatRate:     cmp.Or(c.BeatRate, 20),
		BeatBurst:    cmp.Or(c.BeatBurst, 1000),

		SessionRate:      cmp.Or(c.SessionRate, 1000),
		SessionBurst:     cmp.Or(c.SessionBurst, 1<<14),
		SessionByteRate:  cmp.Or(c.SessionByteRate, 8<<20),
		SessionByteBurst: cmp.Or(c.SessionByteBurst, 32<<20),
	}
}

// Counters count since the creation of the Replica.
type Counters struct {
	// Beats are accepted beats, LateBeats those of them that came more than half of Config.Suspect after the former
	// one, RefusedBeats those of nodes with other versions.
	Beats, LateBeats, RefusedBeats uint64
	// Stale are messages of earlier incarnations and of unknown nodes, Limited messages beyond a rate or memory limit.
	Stale, Limited uint64
	// Gaps are missing deltas. Requested and Received are snapshots and digests of other nodes, Served those for them.
	Gaps, Requested, Received, Served uint64
}

package client

import "github.com/volsfu/volsfu/internal/redundancy"

// PathCounts counts the packets that arrived on one path.
type PathCounts struct {
	// First counts packets that no other path had delivered before, Repeated packets that another path had delivered.
	First, Repeated uint64
	// Only counts packets that no other path has delivered. Packets in transit on the other path are included.
	Only uint64
}

// CopyCounts counts packets and their bytes on the wire.
type CopyCounts struct{ Packets, Bytes uint64 }

// RedundancyStats describes the use of a second path since the beginning of the session.
type RedundancyStats struct {
	// Received counts the packets that arrived on each path, in the order of Config.Interfaces. It is nil if no packet
	// has arrived on a second path.
	Received []PathCounts
	// Sent counts the packets that were sent while a second path could carry copies, and Copied their copies, by
	// reason: "audio", "lowest_quality", "frame_end", "repair" and "other".
	Sent   CopyCounts
	Copied map[string]CopyCounts
	// Outages counts the outages of the first path that the server's reports have shown.
	Outages uint64
}

// Redundancy returns the use of a second path.
func (s *Session) Redundancy() RedundancyStats {
	m := s.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	copies := m.uplink.Copies()
	stats := RedundancyStats{
		Sent: CopyCounts(copies.Sent), Copied: make(map[string]CopyCounts), Outages: copies.Outages,
	}
	for class, count := range copies.Copied {
		stats.Copied[redundancy.Class(class).String()] = CopyCounts(count)
	}
	if paths, used := m.downlink.Paths(); used {
		for path, counts := range paths {
			other := paths[len(paths)-1-path]
			stats.Received = append(stats.Received, PathCounts{
				First: counts.First, Repeated: counts.Repeated, Only: counts.First - min(counts.First, other.Repeated),
			})
		}
	}
	return stats
}

// SPDX-FileCopyrightText: 2026 The Pion community <https://pion.ly>
// SPDX-License-Identifier: MIT

// Package gcc is the estimator of pion/interceptor v0.1.51 (pkg/gcc, with internal/cc) with two defects corrected, for
// the baseline pion-patched:
//
//   - The send history has 16,384 packets (historySize); Pion's has 250. At 50 Mbit/s 250 packets are 50 ms, less than
//     a round trip through a full queue, and an acknowledgement of a packet that is not in the history is not counted.
//   - A group of arrivals ends after 100 ms (burstDuration), as in libwebrtc (InterArrivalDelta::BelongsToBurst). On a
//     saturated link packets arrive less than 5 ms apart: without the cap they join one group that never ends, and the
//     delay-based estimate is not updated.
//
// The rest is Pion's code without RFC 8888 feedback, logging options and the pacer, which is imported from Pion itself.
// The files keep Pion's licence (LICENSE).
package gcc

import "time"

func clampInt(b, minVal, maxVal int) int {
	return max(minVal, min(maxVal, b))
}

func clampDuration(d, minVal, maxVal time.Duration) time.Duration {
	return time.Duration(clampInt(int(d), int(minVal), int(maxVal)))
}

// Package congestion estimates the bit rate that a receiver can take, from feedback about the packets sent to that
// receiver.
//
// The package is pure: an Estimator is stepped with an explicit now and belongs to the goroutine that steps it. There
// are no goroutines, clocks, locks or callbacks. Reports are slices of PacketResult, whatever the format on the wire
// was: transport-wide feedback or RFC 8888.
//
// # GCC
//
// GCC is Google Congestion Control after draft-ietf-rmcat-gcc-02 and its later development in libwebrtc, for 1 to 1000
// Mbit/s. Received packets pass through
//
//	groups        packets sent within 5 ms, or delivered in one burst of at most 100 ms, and the delay gained
//	              from group to group
//	trendline     slope of the smoothed delay over 20 groups
//	overuse       comparison of the slope with an adaptive threshold: normal, overusing, underusing
//	queue         delay that remains between frames (standing queue)
//	collapse      arrival rate of one frame on a path that has lost most of its capacity
//	acknowledged  arrival rate over 500 ms, over 100 ms, and in bursts
//	aimd          the delay-based rate: AIMD around the acknowledged rate
//
// Further parts bound or change the rate of aimd:
//
//	loss          upper bound: the rate above which losses grow
//	limited       reports whether the sender uses its estimate
//	contention    detects from losses that cross traffic keeps the queue full
//	shortness     detects from losses that the queue is too short for bursts
//	silence       reduces the rate while no feedback arrives
//	reportTimer   holds frames while a report is overdue
//	prober        plans probes above the estimate
//	trains        measures the arrival rate of probes
//
// The prober probes at the start, after a large fall, after a silence, and whenever more than the estimate is wanted
// (see Estimator.Want), at intervals that double from 3 to 20 s while probes find no more capacity. A sender that uses
// little of its estimate probes further, so that its frames leave sooner, at intervals of up to 5 minutes.
//
// # Differences from libwebrtc
//
// The traffic consists of frames of up to some megabytes, 30 per second. Each frame is sent at 2.5 times its mean rate
// with gaps of 20 ms between frames, or at 1.25 times if Stats.Evenly is set. The rates are a hundred times those for
// which the constants of libwebrtc were chosen.
//
//   - Acknowledged rates are measured over time (500 ms is 15 frame intervals), not over up to 500 packets, which are
//     50 ms at 100 Mbit/s.
//   - A queue that does not empty between frames for 100 ms is overuse from 10 ms on, at any slope. The slope has to
//     exceed 2.5 to 5 %, which a slowly growing rate reaches only after filling tens of milliseconds. If delays vary by
//     themselves, the limit is above 10 ms. If a delay does not change by a millisecond while the rate is reduced, it
//     belongs to a longer route.
//   - Near the capacity the rate grows by 3 % of the burst rate per second, not by a packet per response time. Overuse
//     reduces the rate by 15 % of the acknowledged rate times the ratio of acknowledged rate to burst rate. Both make
//     flows at one bottleneck converge.
//   - A path that loses more than half of its capacity is detected by the first frame that arrives at a fraction of the
//     rate, 50 ms after the fall and not 120 ms. Almost nothing is sent until the packets in flight have arrived,
//     because further packets would only queue behind them or be dropped.
//   - Frames are sent at 2.5 times their rate and therefore show the capacity of the path. While frames are queued, the
//     rate does not grow beyond the burst rate, and no probe is sent if that rate is near the estimate. A link without
//     cross traffic therefore settles at a rate that leaves no queue between frames. If bursts arrive much faster than
//     at the last overuse, or are not queued any more, probes are sent sooner.
//   - For 250 ms after a probe has raised the rate, only a standing queue counts as overuse: larger frames look like a
//     growing queue, and the queue that the probe left drains.
//   - The rate before a large fall is remembered for a minute and probed repeatedly: wireless links fail for seconds
//     and recover unchanged. Losses in a long queue are forgotten when the queue has emptied. No loss holds the rate
//     down after a second without losses. All losses are forgotten when a probe arrives well above the rate that they
//     allow, a second or more after the last loss.
//   - If a queue overflows that cross traffic keeps full, or that is too short for bursts, frames are sent evenly for a
//     while. If a short queue overflows repeatedly even then, that is overuse.
//   - While a long queue drains, the estimate is below the rate of aimd, so that the queue is empty after about 500 ms.
//     libwebrtc has its congestion window for this purpose.
//   - The deviation of the link capacity and the bounds of the loss estimator are relative to the rate. Losses that do
//     not affect packets in an empty queue are never attributed to the path.
//   - The burst rate bounds growth and probes. It is measured between batches of arrivals, because hosts deliver
//     received packets in batches.
//   - A sender that uses its estimate probes with 1.5 times the estimate, for longer than a frame interval: a probe of
//     15 ms fits between the frames of other senders and would find the whole bottleneck idle. Short probes are for the
//     start, for silences and for senders that use little.
//   - A silence begins after 500 ms without feedback, not after three seconds. Frames are held as soon as a report is
//     overdue: a round trip, two report intervals and 40 ms or more after the first packet that it should cover, so
//     that a single lost report holds no frame. The path may carry nothing. One frame begins 200 ms later, and further
//     ones after pauses that double to 800 ms. After a pause of 100 ms in sending no report is expected about the
//     packets before. The congestion window of libwebrtc has the same purpose.
//
// # Limits
//
// The minimum delay of the last 15 to 30 s counts as the delay of the empty path. Beside flows that keep a queue full
// all that time (loss-based TCP with a deep buffer) the estimate falls until that time is over. Losses beyond 10 % at
// any rate count as congestion. A queue shorter than that of a single frame (20 ms at the full rate) has to overflow
// once in 15 s before frames are sent evenly. Beside several loss-based flows whose queue never empties, and is too
// short to become much longer, an estimator takes up to twice its fair share: a constant queue is attributed to the
// path, and so are losses up to InherentMax.
//
// A sender remembers up to 32,768 packets until they are reported (feedback.TransportHistory). At 1000 Mbit/s with full
// packets these are sent within 0.32 s: round trip, queue and report interval together. On a longer path the oldest
// packets are dropped before their report. A share of dropped packets does no harm; if no report covers a remembered
// packet for 500 ms, that is a silence, even if every packet has arrived.
//
// GCC counts ECN marks in Stats; its estimate does not use them.
//
// # L4S
//
// L4S is for receivers that report the ECN field of each packet. Packets leave as ECT(1), and frames one after another
// at the estimate (Stats.Smooth), until a long queue without marks shows that no queue marks. After 10 s without a mark
// frames leave at 1.25 times the estimate at most (Stats.Unmarked). While the rate has its upper limit, frames leave in
// the longest bursts that the path admits without marks and without a queue (Stats.Burst). GCC with its probes governs
// the rate until the first mark, which ends a probe. From then on
//
//	markResponse   the rate follows the share of marked packets as that of Prague, with a virtual trip of 25 ms
//	GCC            lowers the rate: standing queue, trend, losses, silence
//	collapse       lowers the rate when marked packets in a row arrive at a fraction of the rate
//	ecnValidation  codepoint of packets, and the state of the path
//	cubicResponse  the rate on a path with a classic ECN queue
//	burstBound     finds the longest burst of a rate that cannot grow
//	tickMarks      detects from marks that packets must leave one by one
//	slowLink       keeps the queue of a slow link short, if there are no other flows
//
// A receiver that hides marks is a path that does not mark: it has the rate of GCC. After 10 s without marks GCC
// governs. ecnValidation ends L4S if ECT(1) is bleached, rewritten to ECT(0), marked without exception, or dropped. GCC
// then governs, with packets as Not-ECT. A classic ECN queue is recognised by the delay of marked packets and by the
// packets that wait as long without a mark. Then packets leave as ECT(0), and frames one after another. The path is
// tested again after five minutes, and after a silence.
//
// Below 22 Mbit/s, DualPI2 marks late, since it marks no packet before three of them wait: 2.9 ms at 10 Mbit/s. While
// no other flow uses such a link, the delay of packets limits the rate before packets are marked (slowLink): p99 of the
// queue is 1.2 to 1.6 ms at 10 Mbit/s instead of 4, and 1 ms from 50 Mbit/s on.
//
// Paper000 is the controller of paper 000, for comparison.
//
// # Reliable
//
// Reliable is for receivers behind a transport that retransmits lost data: SCTP, under the data channels of browsers.
// Acknowledgements are the only feedback of such a transport. Reliable uses GCC's prober, trains and limited, and in
// place of the other parts
//
//	delivery  acknowledged rate and send rate over 500 ms
//	ackDelay  smallest acknowledgement delay of the last 200 to 400 ms against that of the last 15 to 30 s
//
// Frames leave such a transport only when they are acknowledged. Data that the path does not carry waits in the
// transport, whether the queue of the path is long or short. A delay is therefore the only sign of congestion, and
// losses need no part of their own. The difference from BBR is that Reliable does not wait for a full congestion
// window: frames are bursts between which the path is idle, and a conversation does not tolerate the queue that BBR
// keeps. The rate grows until a queue is detected, and delivery then determines the reduction.
//
// A GCC takes 6.9 kB, an L4S 7.8 kB, and 24 bytes for each packet of the largest report.
package congestion

// Package congestion owns the estimate of how many bits per second a receiver can take, from feedback about the packets sent to it.
//
// Everything here is pure: an Estimator is stepped with an explicit now and belongs to the goroutine that steps it. There are no goroutines, no clocks, no
// locks and no callbacks. Reports come as PacketResults, whatever their format was: transport-wide feedback or RFC 8888.
//
// # GCC
//
// GCC is Google Congestion Control after draft-ietf-rmcat-gcc-02 and what libwebrtc has made of it since, for 1 to 1000 Mbit/s. Packets that arrived go
// through
//
//	groups        packets sent within 5 ms, or delivered in one burst of at most 100 ms, and what the delay gained from group to group
//	trendline     the slope of the smoothed delay over 20 groups
//	overuse       the slope against an adaptive threshold: normal, overusing, underusing
//	queue         the delay that remains between frames
//	collapse      the rate at which one frame arrives on a path that has lost most of its capacity
//	acknowledged  the rate of arrivals over half a second, over a tenth, and in bursts
//
// and make aimd's rate, around what is acknowledged. The loss estimator bounds it by the rate beyond which losses grow; limited tells whether the sender
// uses what it is given; contention and shortness tell from losses that others keep the queue full, or that it is too short for bursts; silence reduces
// the rate while no feedback comes; prober and trains try rates above the estimate: at the start, after a large fall, after a silence, and, at intervals
// that double from 3 to 20 s while they find nothing, whenever more than the estimate is wanted (see Estimator.Want).
// A sender that uses little of its estimate probes further, for its frames to leave sooner, and at intervals up to 5 minutes.
//
// # Where it departs from libwebrtc
//
// The traffic is frames of up to megabytes, 30 per second, each sent at 2.5 times its mean rate, with gaps of 20 ms between, or at 1.25 times where Stats.Evenly says so. And the rates are a hundred
// times those that libwebrtc's constants were found at.
//
//   - Acknowledged rates are taken over time (half a second is 15 frame intervals), not over up to 500 packets, which are 50 ms at 100 Mbit/s.
//   - A queue that does not empty between frames for a tenth of a second is overuse from 10 ms on, whatever its slope. The slope has to exceed 2.5 to 5 %,
//     which a slowly growing rate does only after it has filled tens of milliseconds. Where delays vary by themselves, the 10 ms become more; where a delay
//     does not change by a millisecond while the rate is reduced, it is a longer route's.
//   - Near the capacity the rate grows by 3 % per second of the rate at which bursts arrive, and not by a packet per response time, and overuse takes 15 %
//     of the acknowledged rate times the share that this is of the rate of bursts. Both make flows at one bottleneck come to equal rates.
//   - A path that loses more than half of its capacity is noticed by the first frame that arrives at a fraction of the rate, 50 ms after the fall and not 120.
//     Until what is under way has arrived hardly anything is sent then: it would only wait behind that, or be dropped.
//   - Frames show what the path carries, as they are sent at 2.5 times their rate: while they queue up the rate does not grow beyond what they arrive at, and
//     nothing is probed where that is near the estimate. A link that is used alone so comes to a rate at which no queue is left between frames, and stays there.
//     Where they arrive much faster than when the path was overused, or do not wait at all any more, probes come sooner.
//   - For a quarter of a second after a probe has raised the rate, only a queue that stands counts: frames that have become larger look like one that grows, and what the probe has left empties.
//   - The rate before a large fall is remembered for a minute and probed again and again: wireless links are down for seconds and come back as they were.
//     Losses to a long queue are forgotten when it has emptied, and none hold the rate down once there was none for a second. All are where a probe arrives
//     well above the rate that they allow, a second and more after the last of them.
//   - Where a queue overflows that others keep full, or that is too short for bursts, frames leave evenly for a while. Where a short one overflows again and again even so, that is overuse.
//   - While a long queue empties the estimate is below the rate control's, so that it empties within about half a second; libwebrtc has its congestion
//     window for that.
//   - The deviations of the link's capacity and the bounds of the loss estimator are relative to the rate. Losses that spare the packets which find the
//     queue empty are never the path's.
//   - The rate of bursts bounds growth and probes. It is measured between batches of arrivals: hosts hand over what came since they looked last.
//   - A sender that uses its estimate probes with 1.5 times that, for longer than a frame takes: 15 ms fit between the frames of others and would find the
//     whole bottleneck idle. Short probes are for the start, for silences and for senders that use little.
//   - Silence counts from half a second on, not three.
//
// # Limits
//
// The least delay of the last 15 to 30 s is taken for the empty path's. Against flows that keep a queue full all that time (loss-based TCP with a deep
// buffer) the estimate falls until that time is over. Losses beyond 10 % at any rate are taken for congestion. A queue shorter than that of a single frame
// (20 ms at the full rate) has to overflow once in 15 s, until frames leave evenly. Beside several loss-based flows whose queue never empties,
// and is too short to become much longer, it takes up to twice its fair share: a queue that stays as it is is the path's, and so are losses up to InherentMax.
//
// A sender knows up to 32,768 packets until they are reported (feedback.TransportHistory), which full ones at 1000 Mbit/s are after 0.32 s: round trip, queue and the time until a report together. On a
// longer path the oldest are given up before. A share of them does no harm; where no report speaks of a known packet for half a second, that is a silence, though every packet has arrived.
//
// ECN marks are counted in Stats and not acted upon.
//
// # Reliable
//
// Reliable is for receivers that are sent to over a transport which repeats what is lost: SCTP, under the data channels of browsers. All that is known of those is what they
// acknowledge. It has GCC's prober, trains and limited, and in place of the rest
//
//	delivery  the rate of acknowledgement over half a second, and that at which was sent
//	ackDelay  the quickest acknowledgement of the last 200 to 400 ms against that of the last 15 to 30 s
//
// Frames leave such a transport only when they are acknowledged, so that what its path does not carry waits in it, whether the path's own queue is long or short: a delay is all there is to look
// for, and losses need no part of their own. What it departs from BBR in is that it waits for no congestion window to be full: frames are bursts, between which the path is idle, and a conversation
// does not put up with the queue that BBR keeps. So the rate grows until a queue shows, and delivery then tells how far to go back.
//
// A GCC takes 6.7 kB, and 24 bytes for each packet of the largest report.
package congestion

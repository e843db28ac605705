// Package paths chooses the paths on which the copies of a rule's packets leave. An Observer at the receiver of a pair
// turns sampled copies into reports. A Selector at the sender turns reports into a set of paths and into probes of the
// other paths. Paper is the algorithm of paper 003 as printed, for comparison.
//
// The package is pure: all types are stepped with an explicit now, the time on the monotonic clock of their own host,
// and belong to the goroutine that steps them. The clocks of the two hosts are not synchronised. All copies of a packet
// have one send time, and all paths connect the same two hosts, so that differences of (arrival − send time) between
// paths need no synchronisation.
//
// # Terms
//
// The least delay is the smallest (arrival − send time) of any path within 32 s. A copy is in time if its delay exceeds
// the least delay by at most the deadline. A number is missed if none of its copies is in time. A copy is slow if its
// delay exceeds the least delay of its own path by more than half the deadline: delays vary, even if the copy is in
// time.
//
// # Choice
//
// The Selector keeps the cheapest set that misses at most 0.1 % of the numbers:
//
//	start       a trigger reports trouble. Every path joins that is in time by half of its probes, or that has no
//	            evidence yet. If there is none and the set misses half of the numbers, the best other path joins.
//	late        a path leaves when at most 5 % of its copies are in time, 200 ms after the path has joined. A start
//	            or losses do not add it again for 1 s, or for 1, 2, … 32 s if its probes were in time: its rate is too
//	            small for copies.
//	not needed  a smaller set would have missed as few numbers: for 250 ms if it has several paths, for 0.8 s if it
//	            has one. Sets without paths that vary are preferred, then the order of the configuration.
//	losses      the set misses more than 0.2 % over several seconds. The best standby path joins.
//	recovered   probes of the primary path were in time and steady for 1.2 s, or up to 1.8 s after returns that
//	            failed. One of many may be lost. The path joins, and the path that is not needed any more leaves as
//	            above, so that no switch happens without overlap. The primary path leaves again as soon as it varies.
//	crowded     all paths of the set miss the same numbers. The set shrinks to its best path for 0.5 s. If a single
//	            copy does as well, the set does not grow for 2 s, as long as it delivers half of the numbers.
//
// The waiting times double when they were too short: that of a single path after trouble within 10 s, that of the
// return of the primary path if it fails within 10 s, and those after copies that did not help.
//
// The set is never empty: the best path stays, even if no path meets the deadline.
package paths

// Package leaderboard compares congestion controllers: the test cases of RFC 8867 and links with recorded rates, in
// virtual time, with the same media, pacing and repair for every controller.
//
//	links      the recorded links: where they come from, and which were seen while GCC was tuned
//	entries    the controllers: those of package congestion, Pion's, Cubic, BBR, and yardsticks that know the link
//	board      runs, and the figures of each entry with intervals
//	page       the board as a page, and its plots
package leaderboard

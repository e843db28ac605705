// Package awake keeps the machine's processors from falling asleep while something is measured whose time matters.
//
// A virtual machine's processor that has nothing to do is given to somebody else, and comes back late: on a machine with two such processors that did little, timers fired
// up to 0.1 ms late in half of the cases, but 4 ms late in 5 % and 8 ms late in 1 %. A physical processor needs up to some 0.2 ms to wake up from its deepest sleep.
//
// Linux is told that nobody may wait for a processor to wake up, as long as the file /dev/cpu_dma_latency is open: its idle processors then wait in a loop of their own. They stay idle to
// the scheduler, which gives them work of others at once. That takes root, and a driver for idle processors.
//
// Otherwise programs run, one for each processor, in the scheduler's class for what runs only when nothing else does (SCHED_IDLE), and with the highest niceness, by which
// lab.ReadMachineTime knows that they are no load. A processor that is busy with one does not look for work, so that others' may pile up behind a thread with a deadline while it could be
// done here: the second choice. They are a shell's empty loop, and no threads of this process, since a thread of Go's that waits for a processor holds up the collection of garbage. They die
// with this process.
//
// Hold may be called from any goroutine; a mutex guards the count of those who hold.
package awake

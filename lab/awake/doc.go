// Package awake keeps the machine's processors from sleeping during measurements of time.
//
// A virtual machine's idle processor is given to other machines, and comes back late: on a machine with two such
// processors under little load, timers fired up to 0.1 ms late in half of the cases, but 4 ms late in 5 % and 8 ms late
// in 1 %. A physical processor needs up to about 0.2 ms to wake up from its deepest sleep.
//
// While the file /dev/cpu_dma_latency is open, Linux lets no processor take time to wake up: idle processors wait in a
// loop. The scheduler still sees them as idle and gives them work immediately. This needs root, and a driver for idle
// processors.
//
// Without it, one program per processor runs in the scheduler's class for work that runs only on an otherwise idle
// processor (SCHED_IDLE), and with the highest niceness, by which lab.ReadMachineTime knows that it is no load. This is
// the second choice, because a processor that is busy with such a program does not look for work: threads may queue
// behind a thread with a deadline on another processor. The programs are an empty loop of a shell and no threads of
// this process, because a thread of Go that waits for a processor delays garbage collection. They end with this
// process.
//
// Hold may be called from any goroutine; a mutex guards the number of holders.
package awake

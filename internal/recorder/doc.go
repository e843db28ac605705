// Package recorder records rooms into files (pkg/recording).
//
// A Recording reads the packet logs of the tracks that it records, as the writers of receivers do (forward/packetlog):
// the log is the queue between the forwarding path and the recorder. The forwarding path does nothing for a recording:
// it takes no lock, sends no signal and copies nothing. One goroutine, that of the Recorder, reads the logs of all
// recordings every 25 ms, joins packets to frames and encodes records in memory. The data of a frame is copied once,
// from the packets to the buffer of a write. Each recording has a second goroutine, which alone uses the disk. Between
// both is a queue of bounded size: if the disk is slow, whole frames are discarded and counted.
//
// The methods of a Recording do not wait for the disk. They wait for the lock of the recording, which the Recorder's
// goroutine holds while it copies the packets of 25 ms.
package recorder

// Package fault makes a server fail on purpose. A laboratory's check proves nothing if a server that does the opposite of
// the claim passes the check: lab/test/faults builds the programs with the tag faulty and demands that the checks report
// missed targets.
//
// Without the tag, Injected is the constant false and the compiler removes every call of this package. Callers write
//
//	if fault.Injected && fault.LosesFrame(number) {
//
// With the tag, the environment variable SERVER_FAULT names one fault:
//
//	crash=5s    the process panics so long after its first server has started
//	loss        one frame in 100 is not forwarded, without a word to the receivers
//	delay       media packets are forwarded 50 ms after they have come
//	no-switch   a slot keeps the first quality that it carries
//
// Without the variable a faulty build has no fault.
package fault

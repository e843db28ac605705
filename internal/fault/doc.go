// Package fault makes a server fail on purpose. A check of the lab proves nothing if it passes with a server that
// violates the claim: lab/test/faults builds the programs with the tag faulty and requires that the checks report
// missed targets.
//
// Without the tag, Injected is the constant false and the compiler removes every call of this package. Callers write
//
//	if fault.Injected && fault.LosesFrame(number) {
//
// With the tag, the environment variable SERVER_FAULT selects one fault:
//
//	crash=5s    the process panics this long after its first server has started
//	loss        one frame in 100 is not forwarded, without notice to the receivers
//	delay       media packets are forwarded 50 ms after their arrival
//	no-switch   a slot keeps its first quality
//
// Without the variable a faulty build has no fault.
package fault

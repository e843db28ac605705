#include "textflag.h"

// func prefetch(p unsafe.Pointer, lines int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD lines+8(FP), R1
loop:
	CMP  $0, R1
	BLE  done
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUB  $1, R1
	B    loop
done:
	RET

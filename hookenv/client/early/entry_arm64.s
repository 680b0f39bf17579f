//go:build linux && !race && !msan && !asan

#include "textflag.h"

// func entry()
TEXT ·entry(SB),NOSPLIT|NOFRAME,$0
	MOVD	RSP, R0
	SUB	$32, RSP
	MOVD	R0, 8(RSP)	// begin's argument
	BL	·begin(SB)
	ADD	$32, RSP
	JMP	_rt0_arm64_linux(SB)

// func systemCall(number, a, b, c, d, e, f uintptr) int
TEXT ·systemCall(SB),NOSPLIT,$0-64
	MOVD	number+0(FP), R8
	MOVD	a+8(FP), R0
	MOVD	b+16(FP), R1
	MOVD	c+24(FP), R2
	MOVD	d+32(FP), R3
	MOVD	e+40(FP), R4
	MOVD	f+48(FP), R5
	SVC
	MOVD	R0, ret+56(FP)
	RET

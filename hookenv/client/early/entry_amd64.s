//go:build linux && !race && !msan && !asan

#include "textflag.h"

// func entry()
TEXT ·entry(SB),NOSPLIT|NOFRAME,$0
	MOVQ	SP, AX
	SUBQ	$32, SP
	MOVQ	AX, 0(SP)	// begin's argument
	MOVQ	$0, 8(SP)	// g: Go loads it from before where FS points
	LEAQ	24(SP), SI	// FS, which a dynamic loader has set
	MOVQ	$0x1003, DI	// ARCH_GET_FS
	MOVQ	$158, AX	// arch_prctl
	SYSCALL
	LEAQ	16(SP), SI
	MOVQ	$0x1002, DI	// ARCH_SET_FS
	MOVQ	$158, AX
	SYSCALL
	CALL	·begin(SB)
	MOVQ	24(SP), SI
	MOVQ	$0x1002, DI
	MOVQ	$158, AX
	SYSCALL
	ADDQ	$32, SP
	JMP	_rt0_amd64_linux(SB)

// func systemCall(number, a, b, c, d, e, f uintptr) int
TEXT ·systemCall(SB),NOSPLIT,$0-64
	MOVQ	number+0(FP), AX
	MOVQ	a+8(FP), DI
	MOVQ	b+16(FP), SI
	MOVQ	c+24(FP), DX
	MOVQ	d+32(FP), R10
	MOVQ	e+40(FP), R8
	MOVQ	f+48(FP), R9
	SYSCALL
	MOVQ	AX, ret+56(FP)
	RET

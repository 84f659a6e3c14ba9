// What ptx_bench.cpp runs: plain CUDA kernels as nvcc compiles them.
#pragma once

inline constexpr const char* kSaxpy = R"ptx(
.version 9.0
.target sm_90
.address_size 64
	// .globl	saxpy
.visible .entry saxpy(
	.param .u64 saxpy_param_0,
	.param .u64 saxpy_param_1,
	.param .f32 saxpy_param_2,
	.param .u32 saxpy_param_3
)
{
	.reg .pred 	%p<2>;
	.reg .f32 	%f<5>;
	.reg .b32 	%r<6>;
	.reg .b64 	%rd<8>;
	ld.param.u64 	%rd1, [saxpy_param_0];
	ld.param.u64 	%rd2, [saxpy_param_1];
	ld.param.f32 	%f1, [saxpy_param_2];
	ld.param.u32 	%r2, [saxpy_param_3];
	mov.u32 	%r3, %ctaid.x;
	mov.u32 	%r4, %ntid.x;
	mov.u32 	%r5, %tid.x;
	mad.lo.s32 	%r1, %r3, %r4, %r5;
	setp.ge.u32 	%p1, %r1, %r2;
	@%p1 bra 	$L__BB0_2;
	cvta.to.global.u64 	%rd3, %rd2;
	cvta.to.global.u64 	%rd4, %rd1;
	mul.wide.u32 	%rd5, %r1, 4;
	add.s64 	%rd6, %rd4, %rd5;
	ld.global.f32 	%f2, [%rd6];
	add.s64 	%rd7, %rd3, %rd5;
	ld.global.f32 	%f3, [%rd7];
	fma.rn.f32 	%f4, %f2, %f1, %f3;
	st.global.f32 	[%rd7], %f4;
$L__BB0_2:
	ret;
}
)ptx";

inline constexpr const char* kMatmul = R"ptx(
.version 9.0
.target sm_90
.address_size 64
	// .globl	matmul
// _ZZ6matmulE2ta has been demoted
// _ZZ6matmulE2tb has been demoted
.visible .entry matmul(
	.param .u64 matmul_param_0,
	.param .u64 matmul_param_1,
	.param .u64 matmul_param_2,
	.param .u32 matmul_param_3
)
{
	.reg .pred 	%p<3>;
	.reg .f32 	%f<57>;
	.reg .b32 	%r<29>;
	.reg .b64 	%rd<13>;
	// demoted variable
	.shared .align 4 .b8 _ZZ6matmulE2ta[1024];
	// demoted variable
	.shared .align 4 .b8 _ZZ6matmulE2tb[1024];
	ld.param.u64 	%rd3, [matmul_param_0];
	ld.param.u64 	%rd4, [matmul_param_1];
	ld.param.u64 	%rd5, [matmul_param_2];
	ld.param.u32 	%r12, [matmul_param_3];
	mov.u32 	%r13, %ctaid.y;
	shl.b32 	%r14, %r13, 4;
	mov.u32 	%r1, %tid.y;
	add.s32 	%r15, %r14, %r1;
	mov.u32 	%r16, %ctaid.x;
	shl.b32 	%r17, %r16, 4;
	mov.u32 	%r2, %tid.x;
	add.s32 	%r3, %r17, %r2;
	mul.lo.s32 	%r4, %r15, %r12;
	setp.eq.s32 	%p1, %r12, 0;
	mov.f32 	%f56, 0f00000000;
	@%p1 bra 	$L__BB0_3;
	add.s32 	%r5, %r4, %r2;
	shl.b32 	%r19, %r1, 6;
	mov.u32 	%r20, _ZZ6matmulE2ta;
	add.s32 	%r8, %r20, %r19;
	shl.b32 	%r21, %r2, 2;
	add.s32 	%r6, %r8, %r21;
	mov.u32 	%r22, _ZZ6matmulE2tb;
	add.s32 	%r23, %r22, %r19;
	add.s32 	%r7, %r23, %r21;
	add.s32 	%r9, %r22, %r21;
	cvta.to.global.u64 	%rd1, %rd3;
	cvta.to.global.u64 	%rd2, %rd4;
	mov.f32 	%f56, 0f00000000;
	mov.u32 	%r28, 0;
$L__BB0_2:
	add.s32 	%r24, %r5, %r28;
	mul.wide.u32 	%rd6, %r24, 4;
	add.s64 	%rd7, %rd1, %rd6;
	ld.global.f32 	%f6, [%rd7];
	st.shared.f32 	[%r6], %f6;
	add.s32 	%r25, %r28, %r1;
	mad.lo.s32 	%r26, %r25, %r12, %r3;
	mul.wide.u32 	%rd8, %r26, 4;
	add.s64 	%rd9, %rd2, %rd8;
	ld.global.f32 	%f7, [%rd9];
	st.shared.f32 	[%r7], %f7;
	bar.sync 	0;
	ld.shared.f32 	%f8, [%r9];
	ld.shared.f32 	%f9, [%r8];
	fma.rn.f32 	%f10, %f9, %f8, %f56;
	ld.shared.f32 	%f11, [%r9+64];
	ld.shared.f32 	%f12, [%r8+4];
	fma.rn.f32 	%f13, %f12, %f11, %f10;
	ld.shared.f32 	%f14, [%r9+128];
	ld.shared.f32 	%f15, [%r8+8];
	fma.rn.f32 	%f16, %f15, %f14, %f13;
	ld.shared.f32 	%f17, [%r9+192];
	ld.shared.f32 	%f18, [%r8+12];
	fma.rn.f32 	%f19, %f18, %f17, %f16;
	ld.shared.f32 	%f20, [%r9+256];
	ld.shared.f32 	%f21, [%r8+16];
	fma.rn.f32 	%f22, %f21, %f20, %f19;
	ld.shared.f32 	%f23, [%r9+320];
	ld.shared.f32 	%f24, [%r8+20];
	fma.rn.f32 	%f25, %f24, %f23, %f22;
	ld.shared.f32 	%f26, [%r9+384];
	ld.shared.f32 	%f27, [%r8+24];
	fma.rn.f32 	%f28, %f27, %f26, %f25;
	ld.shared.f32 	%f29, [%r9+448];
	ld.shared.f32 	%f30, [%r8+28];
	fma.rn.f32 	%f31, %f30, %f29, %f28;
	ld.shared.f32 	%f32, [%r9+512];
	ld.shared.f32 	%f33, [%r8+32];
	fma.rn.f32 	%f34, %f33, %f32, %f31;
	ld.shared.f32 	%f35, [%r9+576];
	ld.shared.f32 	%f36, [%r8+36];
	fma.rn.f32 	%f37, %f36, %f35, %f34;
	ld.shared.f32 	%f38, [%r9+640];
	ld.shared.f32 	%f39, [%r8+40];
	fma.rn.f32 	%f40, %f39, %f38, %f37;
	ld.shared.f32 	%f41, [%r9+704];
	ld.shared.f32 	%f42, [%r8+44];
	fma.rn.f32 	%f43, %f42, %f41, %f40;
	ld.shared.f32 	%f44, [%r9+768];
	ld.shared.f32 	%f45, [%r8+48];
	fma.rn.f32 	%f46, %f45, %f44, %f43;
	ld.shared.f32 	%f47, [%r9+832];
	ld.shared.f32 	%f48, [%r8+52];
	fma.rn.f32 	%f49, %f48, %f47, %f46;
	ld.shared.f32 	%f50, [%r9+896];
	ld.shared.f32 	%f51, [%r8+56];
	fma.rn.f32 	%f52, %f51, %f50, %f49;
	ld.shared.f32 	%f53, [%r9+960];
	ld.shared.f32 	%f54, [%r8+60];
	fma.rn.f32 	%f56, %f54, %f53, %f52;
	bar.sync 	0;
	add.s32 	%r28, %r28, 16;
	setp.lt.u32 	%p2, %r28, %r12;
	@%p2 bra 	$L__BB0_2;
$L__BB0_3:
	add.s32 	%r27, %r4, %r3;
	cvta.to.global.u64 	%rd10, %rd5;
	mul.wide.u32 	%rd11, %r27, 4;
	add.s64 	%rd12, %rd10, %rd11;
	st.global.f32 	[%rd12], %f56;
	ret;
}
)ptx";

inline constexpr const char* kReduce = R"ptx(
.version 9.0
.target sm_90
.address_size 64
	// .globl	reduce
// _ZZ6reduceE1w has been demoted
.visible .entry reduce(
	.param .u64 reduce_param_0,
	.param .u64 reduce_param_1,
	.param .u32 reduce_param_2
)
{
	.reg .pred 	%p<14>;
	.reg .f32 	%f<27>;
	.reg .b32 	%r<47>;
	.reg .b64 	%rd<7>;
	// demoted variable
	.shared .align 4 .b8 _ZZ6reduceE1w[32];
	ld.param.u64 	%rd2, [reduce_param_0];
	ld.param.u64 	%rd3, [reduce_param_1];
	ld.param.u32 	%r7, [reduce_param_2];
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r8, %ctaid.x;
	mov.u32 	%r2, %tid.x;
	mad.lo.s32 	%r46, %r8, %r1, %r2;
	setp.ge.u32 	%p1, %r46, %r7;
	mov.f32 	%f26, 0f00000000;
	@%p1 bra 	$L__BB0_3;
	mov.u32 	%r9, %nctaid.x;
	mul.lo.s32 	%r4, %r9, %r1;
	cvta.to.global.u64 	%rd1, %rd2;
	mov.f32 	%f26, 0f00000000;
$L__BB0_2:
	mul.wide.u32 	%rd4, %r46, 4;
	add.s64 	%rd5, %rd1, %rd4;
	ld.global.f32 	%f8, [%rd5];
	add.f32 	%f26, %f26, %f8;
	add.s32 	%r46, %r46, %r4;
	setp.lt.u32 	%p2, %r46, %r7;
	@%p2 bra 	$L__BB0_2;
$L__BB0_3:
	mov.b32 	%r10, %f26;
	mov.u32 	%r11, 2;
	mov.u32 	%r12, 31;
	mov.u32 	%r13, 16;
	mov.u32 	%r14, -1;
	shfl.sync.down.b32 	%r15|%p3, %r10, %r13, %r12, %r14;
	mov.b32 	%f9, %r15;
	add.f32 	%f10, %f26, %f9;
	mov.b32 	%r16, %f10;
	mov.u32 	%r17, 8;
	shfl.sync.down.b32 	%r18|%p4, %r16, %r17, %r12, %r14;
	mov.b32 	%f11, %r18;
	add.f32 	%f12, %f10, %f11;
	mov.b32 	%r19, %f12;
	mov.u32 	%r20, 4;
	shfl.sync.down.b32 	%r21|%p5, %r19, %r20, %r12, %r14;
	mov.b32 	%f13, %r21;
	add.f32 	%f14, %f12, %f13;
	mov.b32 	%r22, %f14;
	shfl.sync.down.b32 	%r23|%p6, %r22, %r11, %r12, %r14;
	mov.b32 	%f15, %r23;
	add.f32 	%f16, %f14, %f15;
	mov.b32 	%r24, %f16;
	mov.u32 	%r25, 1;
	shfl.sync.down.b32 	%r26|%p7, %r24, %r25, %r12, %r14;
	mov.b32 	%f17, %r26;
	add.f32 	%f4, %f16, %f17;
	and.b32  	%r27, %r2, 31;
	setp.ne.s32 	%p8, %r27, 0;
	@%p8 bra 	$L__BB0_5;
	shr.u32 	%r28, %r2, 3;
	and.b32  	%r29, %r28, 536870908;
	mov.u32 	%r30, _ZZ6reduceE1w;
	add.s32 	%r31, %r30, %r29;
	st.shared.f32 	[%r31], %f4;
$L__BB0_5:
	bar.sync 	0;
	setp.gt.u32 	%p9, %r2, 7;
	@%p9 bra 	$L__BB0_8;
	shl.b32 	%r32, %r2, 2;
	mov.u32 	%r33, _ZZ6reduceE1w;
	add.s32 	%r34, %r33, %r32;
	mov.u32 	%r35, 2;
	ld.shared.f32 	%f18, [%r34];
	mov.b32 	%r36, %f18;
	mov.u32 	%r37, 31;
	mov.u32 	%r38, 4;
	mov.u32 	%r39, 255;
	shfl.sync.down.b32 	%r40|%p10, %r36, %r38, %r37, %r39;
	mov.b32 	%f19, %r40;
	add.f32 	%f20, %f18, %f19;
	mov.b32 	%r41, %f20;
	shfl.sync.down.b32 	%r42|%p11, %r41, %r35, %r37, %r39;
	mov.b32 	%f21, %r42;
	add.f32 	%f22, %f20, %f21;
	mov.b32 	%r43, %f22;
	mov.u32 	%r44, 1;
	shfl.sync.down.b32 	%r45|%p12, %r43, %r44, %r37, %r39;
	mov.b32 	%f23, %r45;
	add.f32 	%f5, %f22, %f23;
	setp.ne.s32 	%p13, %r2, 0;
	@%p13 bra 	$L__BB0_8;
	cvta.to.global.u64 	%rd6, %rd3;
	atom.global.add.f32 	%f24, [%rd6], %f5;
$L__BB0_8:
	ret;
}
)ptx";

; The native loop that runs a program: one call from Python, one OpenMP region, no work per kernel
; beyond a load and an indirect call. `program.py` fills the structures and says what they mean.
;
;   record { kernel, args, symbols, flags, tickets }
;                                                flags: 1 = wait for all threads afterwards
;                                                       2 = thread 0 alone runs it
;   job    { records, count, scratch, threads, times, tickets, number of tickets }
;   kernel   void (ptr args, ptr symbols, ptr scratch, i64 tid, i64 nthreads, ptr tickets)
;
; Tickets are counters, a cache line each, by which the threads share the work of a kernel: they are
; set to 0 before it all.
;
; With `times`, an array [threads, 2 * count + 1], each thread writes its row: the time in ns before
; each record and after its kernel, and the time at the end. What passes from after a kernel to before
; the next record is spent at the barrier.

%record = type { ptr, ptr, ptr, i64, ptr }
%job = type { ptr, i64, ptr, i64, ptr, ptr, i64 }
%line = type [8 x i64]
%timespec = type { i64, i64 }

declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare void @GOMP_barrier()
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
declare i32 @clock_gettime(i32, ptr)

define void @metadef_run(ptr %job) {
entry:
  %tickets.at = getelementptr %job, ptr %job, i64 0, i32 5
  %tickets = load ptr, ptr %tickets.at
  %number.at = getelementptr %job, ptr %job, i64 0, i32 6
  %number = load i64, ptr %number.at
  br label %reset
reset:
  %i = phi i64 [ 0, %entry ], [ %next, %zero ]
  %left = icmp ult i64 %i, %number
  br i1 %left, label %zero, label %start
zero:
  %ticket = getelementptr %line, ptr %tickets, i64 %i
  store i64 0, ptr %ticket
  %next = add i64 %i, 1
  br label %reset
start:
  %threads.at = getelementptr %job, ptr %job, i64 0, i32 3
  %threads = load i64, ptr %threads.at
  %alone = icmp ule i64 %threads, 1
  br i1 %alone, label %one, label %team
one:
  call void @work(ptr %job, i64 0, i64 1)
  ret void
team:
  %count = trunc i64 %threads to i32
  call void @GOMP_parallel(ptr @member, ptr %job, i32 %count, i32 0)
  ret void
}

; What each thread of the team runs. The team may be smaller than was asked for: inside another
; parallel region it is one thread.
define internal void @member(ptr %job) {
  %tid32 = call i32 @omp_get_thread_num()
  %nthreads32 = call i32 @omp_get_num_threads()
  %tid = zext i32 %tid32 to i64
  %nthreads = zext i32 %nthreads32 to i64
  call void @work(ptr %job, i64 %tid, i64 %nthreads)
  ret void
}

; Two copies of the loop: the one without the clock pays nothing for it.
define internal void @work(ptr %job, i64 %tid, i64 %nthreads) {
  %times.at = getelementptr %job, ptr %job, i64 0, i32 4
  %times = load ptr, ptr %times.at
  %timed = icmp ne ptr %times, null
  br i1 %timed, label %clock, label %plain
clock:
  call void @loop(ptr %job, i64 %tid, i64 %nthreads, ptr %times, i1 true)
  ret void
plain:
  call void @loop(ptr %job, i64 %tid, i64 %nthreads, ptr null, i1 false)
  ret void
}

define internal void @loop(ptr %job, i64 %tid, i64 %nthreads, ptr %times, i1 %timed) alwaysinline {
entry:
  %time = alloca %timespec
  %records = load ptr, ptr %job
  %count.at = getelementptr %job, ptr %job, i64 0, i32 1
  %count = load i64, ptr %count.at
  %scratch.at = getelementptr %job, ptr %job, i64 0, i32 2
  %scratch = load ptr, ptr %scratch.at
  %twice = shl i64 %count, 1
  %length = add i64 %twice, 1
  %start = mul i64 %tid, %length
  %row = getelementptr i64, ptr %times, i64 %start
  %first = icmp eq i64 %tid, 0
  %several = icmp ugt i64 %nthreads, 1
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %tail ]
  br i1 %timed, label %before, label %test
before:
  %even = shl i64 %i, 1
  call void @now(ptr %row, i64 %even, ptr %time)
  br label %test
test:
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %exit

body:
  %record = getelementptr %record, ptr %records, i64 %i
  %kernel = load ptr, ptr %record
  %args.at = getelementptr %record, ptr %record, i64 0, i32 1
  %args = load ptr, ptr %args.at
  %symbols.at = getelementptr %record, ptr %record, i64 0, i32 2
  %symbols = load ptr, ptr %symbols.at
  %flags.at = getelementptr %record, ptr %record, i64 0, i32 3
  %flags = load i64, ptr %flags.at
  %tickets.at = getelementptr %record, ptr %record, i64 0, i32 4
  %tickets = load ptr, ptr %tickets.at
  %serial.bit = and i64 %flags, 2
  %serial = icmp ne i64 %serial.bit, 0
  br i1 %serial, label %alone, label %together
together:
  call void %kernel(ptr %args, ptr %symbols, ptr %scratch, i64 %tid, i64 %nthreads, ptr %tickets)
  br label %ran
alone:
  br i1 %first, label %run, label %ran
run:
  call void %kernel(ptr %args, ptr %symbols, ptr %scratch, i64 0, i64 1, ptr %tickets)
  br label %ran
ran:
  br i1 %timed, label %after, label %meet
after:
  %even.again = shl i64 %i, 1
  %odd = or i64 %even.again, 1
  call void @now(ptr %row, i64 %odd, ptr %time)
  br label %meet
meet:
  %wait.bit = and i64 %flags, 1
  %wanted = icmp ne i64 %wait.bit, 0
  %wait = and i1 %wanted, %several
  br i1 %wait, label %barrier, label %tail
barrier:
  call void @GOMP_barrier()
  br label %tail
tail:
  %next = add i64 %i, 1
  br label %head

exit:
  ret void
}

; row[i] = CLOCK_MONOTONIC in ns
define internal void @now(ptr %row, i64 %i, ptr %time) {
  %status = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %ns.at = getelementptr %timespec, ptr %time, i64 0, i32 1
  %ns = load i64, ptr %ns.at
  %scaled = mul i64 %seconds, 1000000000
  %total = add i64 %scaled, %ns
  %at = getelementptr i64, ptr %row, i64 %i
  store i64 %total, ptr %at
  ret void
}

# perl: children, signals between processes, an alarm that breaks a loop, backticks, system.
$| = 1; my $got = 0; $SIG{USR1} = sub { $got++ };
for my $i (1..5) {
    my $pid = fork;
    if (!$pid) { kill USR1 => getppid; exit $i }
    waitpid $pid, 0;
    print "child $i ", $? >> 8, "\n";
}
select undef, undef, undef, 0.05; print "signals ", ($got > 0 ? "yes" : "no"), "\n";
$SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; 1 while 1; }; print "left by $@";
print `echo from a child`; system("exit 7"); print $? >> 8, "\n";

# perl: hashes, sorting, regular expressions, exceptions.
my %n; my $x = 1;
for (1..50000) { $x = ($x * 1103515245 + 12345) % 2147483648; $n{"k" . ($x % 701)} += $_ % 7; }
my @top = (sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n)[0..4];
print "@top\n";
my $t = join ",", map { sprintf "%04d", $_ * 37 % 1000 } 1..2000;
my $c = () = $t =~ /(\d)\1/g; (my $u = $t) =~ s/(\d+),(\d+)/$2:$1/g;
print "$c ", length $u, " ", unpack("%32C*", $u), "\n";
eval { die { code => 42 } }; print "caught $@->{code}\n";
print scalar reverse("done"), "\n";

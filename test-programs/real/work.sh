# bash: arrays, functions, subshells, traps, pipes, here strings, background jobs, a coprocess.
declare -A seen; total=0
f() { local n=$1; ((n < 2)) && { echo $n; return; }; echo $(($(f $((n - 1))) + $(f $((n - 2))))); }
for i in {1..200}; do seen[$((i % 17))]=$i; total=$((total + i)); done
echo "$total ${#seen[@]} ${seen[3]}"
f 8
trap 'echo trapped' USR1; kill -USR1 $$
printf '%s\n' one two three | while read -r x; do echo "<$x>"; done
cat <<< "here $total"
x=$(for j in 1 2 3; do (exit $j) || echo "status $?"; done); echo "$x"
sleep 0.05 & wait $!; echo "waited $?"
coproc cat; echo hello >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "coproc $line"
( exec true ); echo "exec $?"
exit 0

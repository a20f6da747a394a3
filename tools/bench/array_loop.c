// The bare array loop: rounds of recursive doubling without noise and without logic, six operations per rank and round.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    if (count != 3) {
        return 2;
    }
    const long ranks = atol(arguments[1]), iterations = atol(arguments[2]);
    const int64_t overhead = 1500, latency = 2500 + 7 * 6;
    int64_t *time = calloc((size_t)ranks, sizeof *time), *left = calloc((size_t)ranks, sizeof *left);
    if (time == NULL || left == NULL) {
        return 1;
    }
    for (long iteration = 0; iteration < iterations; iteration++) {
        for (long distance = 1; distance < ranks; distance *= 2) {
            for (long rank = 0; rank < ranks; rank++) {
                left[rank] = time[rank] + overhead;
            }
            for (long first = 0; first < ranks; first += distance) {
                const int64_t *partner = left + (first ^ distance), *own = left + first;
                for (long rank = 0; rank < distance; rank++) {
                    const int64_t arrives = partner[rank] + latency;
                    time[first + rank] = (arrives > own[rank] ? arrives : own[rank]) + overhead;
                }
            }
        }
    }
    printf("%ld\n", (long)time[0]);
    return 0;
}

/* A loop that two threads share. */
int count(int turns)
{
	int sum = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
	for (int turn = 0; turn < turns; turn++)
		sum++;
	return sum;
}

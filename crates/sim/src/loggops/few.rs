//! A short list that lives where its owner does.

/// A list of which the first `N` lie in place. Only what is longer allocates.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Few<T, const N: usize> {
    len: u32,
    here: [T; N],
    #[expect(clippy::box_collection, reason = "one word in place of three")]
    more: Option<Box<Vec<T>>>,
}

impl<T: Copy + Default, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self { len: 0, here: [T::default(); N], more: None }
    }
}

impl<T: Copy + Default, const N: usize> Few<T, N> {
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline(always)]
    pub(super) fn push(&mut self, one: T) {
        let at = self.len as usize;
        if at < N {
            self.here[at] = one;
        } else {
            self.push_more(one);
        }
        self.len += 1;
    }

    #[cold]
    fn push_more(&mut self, one: T) {
        self.more.get_or_insert_default().push(one);
    }

    /// Those in place.
    #[inline(always)]
    pub(super) fn here(&self) -> &[T] {
        &self.here[..self.len().min(N)]
    }

    /// Those that follow.
    #[inline(always)]
    pub(super) fn more(&self) -> &[T] {
        if self.len() > N { self.more.as_deref().map_or(&[], Vec::as_slice) } else { &[] }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let here = self.len().min(N);
        let more = self.more.iter_mut().flat_map(|more| more.iter_mut());
        self.here[..here].iter_mut().chain(more)
    }

    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        if at < N { self.here().get(at) } else { self.more().get(at - N) }
    }

    /// Takes one out and puts the last in its place.
    #[inline(always)]
    pub(super) fn swap_remove(&mut self, at: usize) -> Option<T> {
        if self.len() > N {
            return self.swap_remove_more(at);
        }
        let one = *self.here().get(at)?;
        self.len -= 1;
        self.here[at] = *self.here.get(self.len as usize)?;
        Some(one)
    }

    #[cold]
    fn swap_remove_more(&mut self, at: usize) -> Option<T> {
        let more = self.more.as_mut()?;
        let one = if at < N { self.here[at] } else { *more.get(at - N)? };
        let last = more.pop()?;
        self.len -= 1;
        if at < N {
            self.here[at] = last;
        } else if let Some(place) = more.get_mut(at - N) {
            *place = last;
        }
        Some(one)
    }

    /// Empties the list into `each`.
    pub(super) fn drain(&mut self, each: impl FnMut(T)) {
        let more = self.more.take().map(|more| *more).unwrap_or_default();
        self.here().iter().copied().chain(more).for_each(each);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_a_list(steps in proptest::collection::vec((0u8..3, 0usize..12), 0..60)) {
            let (mut few, mut list) = (Few::<usize, 3>::default(), Vec::new());
            for (number, (step, at)) in steps.into_iter().enumerate() {
                match step {
                    0 if at < list.len() => prop_assert_eq!(few.swap_remove(at), Some(list.swap_remove(at))),
                    _ => {
                        few.push(number);
                        list.push(number);
                    }
                }
                prop_assert_eq!(few.iter_mut().map(|one| *one).collect::<Vec<_>>(), list.clone());
                prop_assert_eq!(few.get(at), list.get(at));
                prop_assert_eq!(few.len(), list.len());
            }
            few.drain(|one| assert_eq!(one, list.remove(0)));
            prop_assert!(list.is_empty() && few.len() == 0);
        }
    }
}
